//! Where a handshake stands, without what it carries: for tables, logs, trails and tests.

macro_rules! states {
    ($($(#[doc = $doc:literal])* $name:ident $text:literal $expects:literal,)*) => {
        /// A state of either role in either version.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum StateId {
            $($(#[doc = $doc])* $name,)*
        }

        impl StateId {
            /// Every state.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in logs and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// What may come next, for a log line.
            #[must_use]
            pub const fn expects(self) -> &'static str {
                match self {
                    $(Self::$name => $expects,)*
                }
            }
        }
    };
}

states! {
    /// Server: nothing has come yet.
    AwaitClientHello "await_client_hello" "client_hello",
    /// Server, 1.3: a HelloRetryRequest was sent.
    AwaitSecondClientHello "await_second_client_hello" "client_hello",
    /// Server, 1.3: our flight was sent, a certificate was asked for.
    AwaitClientCertificate "await_client_certificate" "certificate",
    /// Server, 1.3: the client's certificate has come.
    AwaitClientCertificateVerify "await_client_certificate_verify" "certificate_verify",
    /// Server, 1.3: the client's Finished is next.
    AwaitClientFinished "await_client_finished" "finished",
    /// Server, 1.2: our flight was sent, a certificate was asked for.
    AwaitClientCertificate12 "await_client_certificate_12" "certificate",
    /// Server, 1.2: the client's share is next.
    AwaitClientKeyExchange "await_client_key_exchange" "client_key_exchange",
    /// Server, 1.2: the client proves its certificate.
    AwaitClientCertificateVerify12 "await_client_certificate_verify_12" "certificate_verify",
    /// Server, 1.2: the client turns its keys on.
    AwaitClientChangeCipherSpec "await_client_change_cipher_spec" "change_cipher_spec",
    /// Server, 1.2: the client's Finished is next.
    AwaitClientFinished12 "await_client_finished_12" "finished",
    /// Client: our hello was sent.
    AwaitServerHello "await_server_hello" "server_hello or hello_retry_request",
    /// Client, 1.3: our second hello was sent.
    AwaitServerHelloAfterRetry "await_server_hello_after_retry" "server_hello",
    /// Client, 1.3: keys are on.
    AwaitEncryptedExtensions "await_encrypted_extensions" "encrypted_extensions",
    /// Client, 1.3: not resumed, so a certificate must come.
    AwaitCertificateOrRequest "await_certificate_or_request" "certificate_request or certificate",
    /// Client, 1.3: a certificate was asked of us; the server's is next.
    AwaitServerCertificate "await_server_certificate" "certificate",
    /// Client, 1.3: the server proves its certificate.
    AwaitServerCertificateVerify "await_server_certificate_verify" "certificate_verify",
    /// Client, 1.3: the server's Finished is next.
    AwaitServerFinished "await_server_finished" "finished",
    /// Client, 1.2: the server's certificate is next.
    AwaitServerCertificate12 "await_server_certificate_12" "certificate",
    /// Client, 1.2: the server's share is next.
    AwaitServerKeyExchange "await_server_key_exchange" "server_key_exchange",
    /// Client, 1.2: the end of the server's flight, or a request before it.
    AwaitServerHelloDone "await_server_hello_done" "certificate_request or server_hello_done",
    /// Client, 1.2: the server promised a ticket.
    AwaitNewSessionTicket "await_new_session_ticket" "new_session_ticket",
    /// Client, 1.2: the server turns its keys on.
    AwaitServerChangeCipherSpec "await_server_change_cipher_spec" "change_cipher_spec",
    /// Client, 1.2: the server's Finished is next.
    AwaitServerFinished12 "await_server_finished_12" "finished",
    /// Application data flows.
    Connected "connected" "application data",
    /// It ended with a cause.
    Failed "failed" "nothing",
}

impl StateId {
    /// Whether a server waits in it for its client.
    #[must_use]
    pub const fn is_servers(self) -> bool {
        (self as u8) < Self::AwaitServerHello as u8
    }
}
