//! Prometheus's page over a real connection to the real binary.

use std::io::{Read, Write};
use std::net::TcpStream;

use skerry_tests::client::Client;
use skerry_tests::process::{METRICS, Start, TempDir};

/// One request, read to the end of the reply.
fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for byte in request.as_bytes().chunks(7) {
        stream.write_all(byte).unwrap();
    }
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(series)).expect(series);
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_page_is_served_and_counts() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let dir = TempDir::new();
    let listener = format!("skerry.metrics.listener=127.0.0.1:{port}");
    let broker = Start::new(dir.path()).with(&[&listener]).start();
    let page = ask(port, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n");
    assert!(
        page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("# EOF\n"),
        "{page}"
    );
    assert_eq!(value(&page, "skerry_connections_accepted_total"), 0.0);

    let _clients = [Client::connect(broker.address), Client::connect(broker.address)];
    // A connection counts once the broker has taken it, which the page may be made before.
    let accepted = || {
        value(
            &ask(port, "GET /metrics HTTP/1.0\r\n\r\n"),
            "skerry_connections_accepted_total",
        )
    };
    while accepted() < 2.0 {}
    assert!(ask(port, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(port, "PUT /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask(port, "\r\n\r\nno\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = format!("GET /metrics HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(5000));
    assert!(ask(port, &long).starts_with("HTTP/1.1 431 "));
}

/// Goal: whoever asks again and again is answered each time, also before the broker has heard that the last connection is over. Method: one page
/// after the other, as fast as they come.
#[test]
fn one_page_after_the_other() {
    let dir = TempDir::new();
    let broker = Start::new(dir.path()).with(&[METRICS]).start();
    for _ in 0..500 {
        assert!(broker.page().ends_with("# EOF\n"));
    }
}
