// Node's tls as a client. Rows on standard input; see README.md.

'use strict'

const fs = require('fs')
const readline = require('readline')
const tls = require('tls')

const LINE_BYTES = 16384 // what one record holds
const PATIENCE_MS = 30000 // without the end of a step; not a measure of anything

const GROUPS = { x25519: 'X25519', secp256r1: 'P-256', secp384r1: 'P-384' }
const TEMP_KEYS = { X25519: 'x25519', prime256v1: 'secp256r1', secp384r1: 'secp384r1' }
const SUITES = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
}
const IANA_NAMES = Object.fromEntries(Object.entries(SUITES).map(([iana, theirs]) => [theirs, iana]))

// `count` bytes in lines of at most LINE_BYTES with their newline, no two neighbours alike.
function data (count) {
  const bytes = Buffer.alloc(count)
  for (let i = 0; i < count; i++) {
    const last = i % LINE_BYTES === LINE_BYTES - 1 || i === count - 1
    bytes[i] = last ? 10 : 97 + (i * 7 + Math.floor(i / 251)) % 26
  }
  return bytes
}

function say (row, number, told) {
  console.log([row.id, number, ...Object.entries(told).map(([key, value]) => `${key}=${value}`)].join('\t'))
}

function options (row, session) {
  const named = !/^[0-9]/.test(row.name)
  return {
    host: '127.0.0.1',
    port: Number(row.port),
    servername: named ? row.name : '',
    checkServerIdentity: (_, certificate) => tls.checkServerIdentity(row.name, certificate),
    ca: fs.readFileSync(row.ca),
    minVersion: `TLSv${row.version}`,
    maxVersion: `TLSv${row.version}`,
    ...(row.cert && { cert: fs.readFileSync(row.cert), key: fs.readFileSync(row.key) }),
    ...(row.suite && { ciphers: SUITES[row.suite] ?? row.suite }),
    ...(row.group && { ecdhCurve: row.group.split(':').map(group => GROUPS[group]).join(':') }),
    session,
  }
}

// One connection; what is known of it, and the session to resume.
function connect (row, session, sizes) {
  return new Promise((resolve, reject) => {
    const socket = tls.connect(options(row, session))
    const all = Buffer.concat(sizes.map(data))
    const told = {}
    let saved, sent = 0, received = 0
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('it went quiet')))
    socket.on('session', later => { saved = later })
    socket.on('error', reject)
    const sendMore = () => {
      // Some 64 KiB under way, each line a record of its own.
      while (sent < all.length && sent < received + 4 * LINE_BYTES) {
        const end = all.indexOf(10, sent) + 1
        socket.write(all.subarray(sent, end))
        sent = end
      }
    }
    socket.on('secureConnect', () => {
      const cipher = socket.getCipher().standardName
      told.version = socket.getProtocol().replace('TLSv', '')
      told.suite = IANA_NAMES[cipher] ?? cipher
      told.resumed = socket.isSessionReused() ? 'yes' : 'no'
      const group = TEMP_KEYS[socket.getEphemeralKeyInfo().name]
      if (group) told.group = group
      sendMore()
    })
    socket.on('data', some => {
      if (!some.equals(all.subarray(received, received + some.length))) {
        socket.destroy(new Error(`other bytes came back at ${received}`))
        return
      }
      received += some.length
      if (received === all.length) socket.end()
      else sendMore()
    })
    socket.on('close', () => {
      if (received < all.length) reject(new Error(`${received} bytes of ${all.length} came back`))
      resolve([{ ...told, echoed: received }, saved])
    })
  })
}

async function connectAll (row) {
  let session, told
  let number = 0
  try {
    for (const sizes of row.echo.split(';')) {
      [told, session] = await connect(row, session, sizes.split(',').map(Number))
      say(row, number++, told)
    }
  } catch (error) {
    say(row, number, { failed: `${error.code ?? ''} ${error.message}`.replace(/\s+/g, ' ') })
  }
}

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    await connectAll({ group: '', ...Object.fromEntries(line.split('\t').map(pair => pair.split(/=(.*)/s, 2))) })
  }
}

main()
