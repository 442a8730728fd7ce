// KafkaJS against the broker.
//
//   kafkajs.js roundtrip [CODEC…]        produce, list, consume in a group, check all, delete
//   kafkajs.js produce TOPIC COUNT MS    one record every MS milliseconds; prints each acknowledged place
//   kafkajs.js member TOPIC GROUP        a group member that prints what it read and what it committed
//
// KafkaJS holds headers in a map, so a repeated name keeps its order but the names among each other do not; it cannot send a null header.
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const { setTimeout: sleep } = require('node:timers/promises')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')

const RECORDS = Number(process.env.RECORDS ?? 10000)
const PARTITIONS = 3
const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

/** PEM files: the CA that the broker's certificate is from, which means TLS; and a certificate of our own with its key. */
function security() {
  const { SKERRY_CA: ca, SKERRY_IDENTITY: identity } = process.env
  if (!ca) return false
  const own = identity && fs.readFileSync(identity)
  return { ca: [fs.readFileSync(ca)], cert: own, key: own }
}

const kafka = new Kafka({
  clientId: 'kafkajs',
  brokers: [process.env.SKERRY_BOOTSTRAP],
  ssl: security(),
  logLevel: logLevel.NOTHING,
})

/** Codecs that KafkaJS leaves to its user: each comes built or needs no building, so an install needs no compiler. */
async function installCodecs() {
  const lz4 = require('lz4-napi')
  const { ZstdCodec } = require('zstd-codec')
  const zstd = await new Promise((loaded) => ZstdCodec.run((binding) => loaded(new binding.Simple())))
  CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: (buffer) => lz4.decompressFrame(buffer),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer)),
    decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
  })
}

class Plan {
  constructor(codec) {
    this.codec = codec
    this.firstMs = Date.now() - RECORDS
    this.topic = `kafkajs-${codec}-${this.firstMs}`
    this.group = `${this.topic}-group`
  }
  message(index) {
    return {
      key: `key-${index % 997}`,
      value: `value-${index}-${'skerry'.repeat(index % 50)}`,
      headers: { index: [`${index}`, 'again'], codec: this.codec, empty: '' },
      timestamp: `${this.firstMs + index}`,
      partition: index % PARTITIONS,
    }
  }
}

async function roundtrip(codec) {
  const plan = new Plan(codec)
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: plan.topic, numPartitions: PARTITIONS, replicationFactor: 1 }] })
  const { topics } = await admin.fetchTopicMetadata({ topics: [plan.topic] })
  assert.equal(topics[0].partitions.length, PARTITIONS, 'partitions in the description')
  const { resources } = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: plan.topic }] })
  const limit = resources[0].configEntries.find(({ configName }) => configName === 'max.message.bytes')
  assert(limit?.isDefault, `max.message.bytes is described as ${JSON.stringify(limit)}`)

  const acked = await produce(plan)
  const following = await consume(plan, acked)

  const committed = await admin.fetchOffsets({ groupId: plan.group, topics: [plan.topic] })
  for (const { partition, offset } of committed[0].partitions) {
    assert.equal(Number(offset), following[partition], `the offset committed for partition ${partition}`)
  }
  for (const { partition, low, high } of await admin.fetchTopicOffsets(plan.topic)) {
    assert.deepEqual([Number(low), Number(high)], [0, following[partition]], `the ends of partition ${partition}`)
  }
  const middle = RECORDS >> 1
  const found = await admin.fetchTopicOffsetsByTimestamp(plan.topic, plan.firstMs + middle)
  const place = found.find(({ partition }) => partition === middle % PARTITIONS)
  assert.equal(acked.get(`${place.partition}/${place.offset}`), middle, `${JSON.stringify(place)} found by the timestamp of ${middle}`)

  const { groups } = await admin.describeGroups([plan.group])
  assert.equal(groups[0].state, 'Empty', 'state of the group')
  assert((await admin.listGroups()).groups.some(({ groupId }) => groupId === plan.group), 'the group is not listed')
  await admin.deleteGroups([plan.group])
  await admin.deleteTopics({ topics: [plan.topic] })
  const deadline = Date.now() + 30_000
  while ((await admin.listTopics()).includes(plan.topic)) {
    assert(Date.now() < deadline, 'the topic is still listed after 30 s')
    await sleep(100)
  }
  await admin.disconnect()
}

/** Sends the plan in requests of 500; answers `partition/offset` → index. */
async function produce(plan) {
  const producer = kafka.producer()
  await producer.connect()
  const acked = new Map()
  for (let first = 0; first < RECORDS; first += 500) {
    const indexes = Array.from({ length: Math.min(500, RECORDS - first) }, (_, n) => first + n)
    const results = await producer.send({
      topic: plan.topic,
      acks: -1,
      compression: TYPES[plan.codec],
      messages: indexes.map((index) => plan.message(index)),
    })
    for (const { partition, baseOffset } of results) {
      indexes
        .filter((index) => index % PARTITIONS === partition)
        .forEach((index, n) => acked.set(`${partition}/${Number(baseOffset) + n}`, index))
    }
  }
  await producer.disconnect()
  assert.equal(acked.size, RECORDS, 'records acknowledged, each at a place of its own')
  return acked
}

/** Reads the topic in a group and checks every record; answers the next offset of each partition. */
async function consume(plan, acked) {
  const consumer = kafka.consumer({ groupId: plan.group })
  await consumer.connect()
  await consumer.subscribe({ topic: plan.topic, fromBeginning: true })
  const following = Array(PARTITIONS).fill(0)
  let read = 0
  await new Promise((done, failed) => {
    const late = setTimeout(() => failed(new Error(`${read} records read of ${RECORDS} after 90 s`)), 90_000)
    // An error thrown in the handler makes KafkaJS start the batch again, so it is handed out by hand.
    const eachMessage = async ({ partition, message }) => {
      try {
        check(plan, acked, following, partition, message)
      } catch (error) {
        failed(error)
      }
      if (++read === RECORDS) {
        clearTimeout(late)
        done()
      }
    }
    consumer.run({ autoCommit: false, eachMessage }).catch(failed)
  }).finally(async () => {
    await consumer.commitOffsets(following.map((offset, partition) => ({ topic: plan.topic, partition, offset: `${offset}` })))
    await consumer.disconnect()
  })
  return following
}

function check(plan, acked, following, partition, message) {
  const place = `${partition}/${message.offset}`
  assert.equal(Number(message.offset), following[partition], `the next offset of partition ${partition}`)
  following[partition] += 1
  assert(acked.has(place), `nothing was acknowledged at ${place}`)
  const index = acked.get(place)
  const want = plan.message(index)
  assert.equal(message.key.toString(), want.key, `the key of record ${index} at ${place}`)
  assert.equal(message.value.toString(), want.value, `the value of record ${index} at ${place}`)
  assert.equal(message.timestamp, want.timestamp, `the timestamp of record ${index} at ${place}`)
  const text = (value) => (Array.isArray(value) ? value.map(String) : String(value))
  const headers = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, text(value)]))
  assert.deepEqual(headers, want.headers, `the headers of record ${index} at ${place}`)
}

async function produceSlowly(topic, count, pauseMs) {
  const producer = kafka.producer()
  await producer.connect()
  for (let index = 0; index < count; index++) {
    const [{ partition, baseOffset }] = await producer.send({
      topic,
      messages: [{ key: `key-${index}`, value: `value-${index}` }],
    })
    console.log('acked', partition, baseOffset)
    await sleep(pauseMs)
  }
  await producer.disconnect()
}

async function member(topic, groupId) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, rebalanceTimeout: 6000, heartbeatInterval: 500 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat, isStale, isRunning }) => {
      let next
      for (const { offset } of batch.messages) {
        if (!isRunning() || isStale()) break
        console.log('read', batch.partition, offset)
        resolveOffset(offset)
        next = `${BigInt(offset) + 1n}`
      }
      if (next === undefined) return
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }])
      console.log('committed', batch.partition, next)
      await heartbeat()
    },
  })
}

async function roundtrips(codecs) {
  await installCodecs()
  let failed = 0
  for (const codec of codecs) {
    const began = Date.now()
    try {
      await roundtrip(codec)
      console.log(`ok   kafkajs ${codec}: ${RECORDS} records in ${((Date.now() - began) / 1000).toFixed(1)} s`)
    } catch (error) {
      failed++
      console.log(`FAIL kafkajs ${codec}: ${error.message}`)
    }
  }
  console.log(`${codecs.length - failed} passed, ${failed} failed`)
  process.exit(failed ? 1 : 0)
}

const [mode, ...rest] = process.argv.slice(2)
const modes = {
  roundtrip: () => roundtrips(rest.length ? rest : Object.keys(TYPES)),
  produce: () => produceSlowly(rest[0], Number(rest[1]), Number(rest[2])),
  member: () => member(rest[0], rest[1]),
}
modes[mode]().catch((error) => {
  console.log('note', error.message)
  process.exit(1)
})
