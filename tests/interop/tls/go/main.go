// Command tlspeer is Go's crypto/tls as a peer of the TLS tests; see README.md.
//
//	tlspeer connect          a client: rows on standard input
//	tlspeer serve OPTION…    an echo server with the options of the example tls-http
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
)

// What one record holds.
const lineBytes = 16384

var (
	versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	groups   = map[string]tls.CurveID{
		"x25519": tls.X25519, "secp256r1": tls.CurveP256, "p256": tls.CurveP256, "secp384r1": tls.CurveP384, "p384": tls.CurveP384,
	}
)

func main() {
	switch os.Args[1] {
	case "connect":
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			row := map[string]string{}
			for _, pair := range strings.Split(lines.Text(), "\t") {
				key, value, _ := strings.Cut(pair, "=")
				row[key] = value
			}
			connectAll(row)
		}
	case "serve":
		if err := serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// say prints one line: what is known of a connection.
func say(id string, number int, pairs ...string) {
	fmt.Println(strings.Join(append([]string{id, strconv.Itoa(number)}, pairs...), "\t"))
}

func connectAll(row map[string]string) {
	config, err := clientConfig(row)
	for number, sizes := range strings.Split(row["echo"], ";") {
		var said []string
		if err == nil {
			said, err = connect(row, config, sizes)
		}
		if err != nil {
			said = append(said, "failed="+strings.Join(strings.Fields(err.Error()), " "))
		}
		say(row["id"], number, said...)
		if err != nil {
			return
		}
	}
}

func clientConfig(row map[string]string) (*tls.Config, error) {
	config := &tls.Config{
		ServerName:         row["name"],
		MinVersion:         versions[row["version"]],
		MaxVersion:         versions[row["version"]],
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
		CurvePreferences:   groupsOf(row["group"]),
		CipherSuites:       suitesOf(row["suite"]),
	}
	var err error
	if config.RootCAs, err = pool(row["ca"]); err != nil {
		return nil, err
	}
	if row["cert"] != "" {
		pair, err := tls.LoadX509KeyPair(row["cert"], row["key"])
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func connect(row map[string]string, config *tls.Config, sizes string) ([]string, error) {
	conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", row["port"]), config)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	said := describe(conn)
	echoed := 0
	for _, size := range strings.Split(sizes, ",") {
		count, err := strconv.Atoi(size)
		if err != nil {
			return said, err
		}
		if err := echo(conn, data(count)); err != nil {
			return said, err
		}
		echoed += count
	}
	said = append(said, fmt.Sprintf("echoed=%d", echoed))
	if err := conn.CloseWrite(); err != nil {
		return said, err
	}
	// The end after a close_notify; without one it is an unexpected one.
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		return said, fmt.Errorf("at the close: %w", err)
	}
	return append(said, "close=clean"), nil
}

// echo sends all and reads it back, up to 64 KiB under way.
func echo(conn *tls.Conn, all []byte) error {
	for len(all) > 0 {
		sent := all[:min(len(all), 4*lineBytes)]
		all = all[len(sent):]
		// Each line in a write of its own, thus a record of its own.
		for line := range bytes.Lines(sent) {
			if _, err := conn.Write(line); err != nil {
				return err
			}
		}
		got := make([]byte, len(sent))
		if n, err := io.ReadFull(conn, got); err != nil {
			return fmt.Errorf("%d bytes of %d came back: %w", n, len(sent), err)
		}
		if !bytes.Equal(got, sent) {
			return fmt.Errorf("other bytes came back of %d", len(sent))
		}
	}
	return nil
}

// data is count bytes in lines of at most lineBytes with their newline, no two neighbours alike.
func data(count int) []byte {
	out := make([]byte, count)
	for i := range out {
		out[i] = byte('a' + (i*7+i/251)%26)
		if i%lineBytes == lineBytes-1 || i == count-1 {
			out[i] = '\n'
		}
	}
	return out
}

func describe(conn *tls.Conn) []string {
	state := conn.ConnectionState()
	said := []string{
		"version=" + strings.TrimPrefix(tls.VersionName(state.Version), "TLS "),
		"suite=" + tls.CipherSuiteName(state.CipherSuite),
		"group=" + groupName(state.CurveID),
		"resumed=" + yes(state.DidResume),
	}
	if state.ServerName != "" {
		said = append(said, "name="+state.ServerName)
	}
	if len(state.PeerCertificates) > 0 {
		said = append(said, "subject="+state.PeerCertificates[0].Subject.CommonName)
	}
	return said
}

func groupName(id tls.CurveID) string {
	switch id {
	case tls.X25519:
		return "x25519"
	case tls.CurveP256:
		return "secp256r1"
	case tls.CurveP384:
		return "secp384r1"
	}
	return strings.ToLower(id.String())
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func groupsOf(names string) (ids []tls.CurveID) {
	for _, name := range strings.Split(names, ":") {
		if id, known := groups[name]; known {
			ids = append(ids, id)
		}
	}
	return ids
}

func suitesOf(names string) (ids []uint16) {
	for _, suite := range tls.CipherSuites() {
		if strings.Contains(names, suite.Name) {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}

func pool(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", path)
	}
	return roots, nil
}

func serve(arguments []string) error {
	options := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := options.String("listen", "127.0.0.1:0", "")
	cert, key := options.String("cert", "", ""), options.String("key", "", "")
	clientCA, clientAuth := options.String("client-ca", "", ""), options.String("client-auth", "none", "")
	lowest, highest := options.String("min-version", "1.2", ""), options.String("max-version", "1.3", "")
	groupNames, suiteNames := options.String("groups", "", ""), options.String("suites", "", "")
	options.Bool("echo", true, "")
	if err := options.Parse(arguments); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	config := &tls.Config{
		Certificates:     []tls.Certificate{pair},
		MinVersion:       versions[*lowest],
		MaxVersion:       versions[*highest],
		CurvePreferences: groupsOf(*groupNames),
		CipherSuites:     suitesOf(*suiteNames),
		ClientAuth: map[string]tls.ClientAuthType{
			"none": tls.NoClientCert, "requested": tls.VerifyClientCertIfGiven, "required": tls.RequireAndVerifyClientCert,
		}[*clientAuth],
	}
	if *clientCA != "" {
		if config.ClientCAs, err = pool(*clientCA); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	for {
		tcp, err := listener.Accept()
		if err != nil {
			return err
		}
		go answer(tls.Server(tcp, config))
	}
}

// answer sends every complete line back until the peer closes, and says so.
func answer(conn *tls.Conn) {
	defer conn.Close()
	peer := "peer=" + conn.RemoteAddr().String()
	if err := conn.Handshake(); err != nil {
		fmt.Println("failed", peer, fmt.Sprintf("cause=%q", err))
		return
	}
	fmt.Println("connected", peer, strings.Join(describe(conn), " "))
	input, echoed := bufio.NewReaderSize(conn, lineBytes), 0
	for {
		line, err := input.ReadSlice('\n')
		if err == nil {
			_, err = conn.Write(line)
		}
		if errors.Is(err, io.EOF) {
			_ = conn.CloseWrite()
			fmt.Println("closed", peer, "how=clean", fmt.Sprintf("received=%d", echoed))
			return
		}
		if err != nil {
			fmt.Println("closed", peer, fmt.Sprintf("how=%q", err), fmt.Sprintf("received=%d", echoed))
			return
		}
		echoed += len(line)
	}
}
