module skerry/interop/tls

go 1.26
