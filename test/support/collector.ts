/**
 * A collector of traces: it receives the requests of an exporter over OTLP/HTTP in protobuf
 * (https://opentelemetry.io/docs/specs/otlp/#otlphttp), and has its own parser.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span of a request. */
export interface Span {
  traceId: string
  spanId: string
  /** Empty for the root span of a trace. */
  parentSpanId: string
  /** The header tracestate of its trace; empty without one. */
  state: string
  name: string
  kind: 'INTERNAL' | 'SERVER' | 'CLIENT'
  /** Nanoseconds since 1970. */
  start: bigint
  end: bigint
  attributes: Record<string, unknown>
  events: number
  links: { traceId: string; spanId: string }[]
  status: 'UNSET' | 'OK' | 'ERROR'
  message: string
  /** The attributes of its process. */
  resource: Record<string, unknown>
  /** The name and the version of the code that recorded it. */
  scope: string
}

export interface Collector {
  /** The value of OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string
  /** All spans so far. */
  spans: Span[]
  /** The headers of all requests so far. */
  headers: NodeJS.Dict<string | string[]>[]
  /** The raw bodies of all requests so far. */
  bodies: Buffer[]
  /** The status of later responses; undefined for no response. */
  status: number | undefined
  stop(): Promise<void>
}

/** Starts a collector on this port, or on a free port. */
export async function startCollector(port = 0): Promise<Collector> {
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    collector.headers.push(req.headers)
    collector.bodies.push(body)
    const { status } = collector
    if (status === undefined) return
    const isRight =
      req.method === 'POST' &&
      req.url === '/v1/traces' &&
      req.headers['content-type'] === 'application/x-protobuf'
    if (isRight && status === 200) collector.spans.push(...readRequest(body))
    res.writeHead(isRight ? status : 400).end()
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    headers: [],
    bodies: [],
    status: 200,
    async stop() {
      server.close().closeAllConnections()
      await once(server, 'close')
    },
  }
  return collector
}

/** The values of each field of a message, by its number: https://protobuf.dev/programming-guides/encoding/ */
type Message = Map<number, (bigint | Buffer)[]>

function readMessage(bytes: Buffer): Message {
  const fields: Message = new Map()
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => {
    at += length
    if (at > bytes.length) throw new RangeError('The message ends too early')
    return bytes.subarray(at - length, at)
  }
  const readers: Record<number, () => bigint | Buffer> = {
    0: varint,
    1: () => take(8).readBigUInt64LE(),
    2: () => take(Number(varint())),
    5: () => BigInt(take(4).readUInt32LE()),
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const read = readers[tag & 7]
    if (!read) throw new TypeError(`There is no wire type ${tag & 7}`)
    const values = fields.get(tag >> 3) ?? []
    values.push(read())
    fields.set(tag >> 3, values)
  }
  return fields
}

const bytesOf = (message: Message, field: number) =>
  (message.get(field) ?? []).filter((value) => Buffer.isBuffer(value))
const messagesOf = (message: Message, field: number) => bytesOf(message, field).map(readMessage)
const textOf = (message: Message, field: number) => String(bytesOf(message, field)[0] ?? '')
const hexOf = (message: Message, field: number) =>
  (bytesOf(message, field)[0] ?? Buffer.alloc(0)).toString('hex')
const numberOf = (message: Message, field: number) => BigInt(String(message.get(field)?.[0] ?? 0n))

// The numbers of the fields: https://github.com/open-telemetry/opentelemetry-proto, trace.proto
function readRequest(body: Buffer): Span[] {
  return messagesOf(readMessage(body), 1).flatMap((ofResource) => {
    const resource = attributesOf(messagesOf(ofResource, 1)[0] ?? new Map(), 1)
    return messagesOf(ofResource, 2).flatMap((ofScope) => {
      const [scope = new Map()] = messagesOf(ofScope, 1)
      const name = `${textOf(scope, 1)} ${textOf(scope, 2)}`
      return messagesOf(ofScope, 2).map((span) => readSpan(span, resource, name))
    })
  })
}

function readSpan(span: Message, resource: Record<string, unknown>, scope: string): Span {
  const kind = (['INTERNAL', 'SERVER', 'CLIENT'] as const)[Number(numberOf(span, 6)) - 1]
  const [status = new Map()] = messagesOf(span, 15)
  const code = (['UNSET', 'OK', 'ERROR'] as const)[Number(numberOf(status, 3))]
  if (!kind || !code) throw new TypeError('A span has a kind and a status')
  return {
    traceId: hexOf(span, 1),
    spanId: hexOf(span, 2),
    parentSpanId: hexOf(span, 4),
    state: textOf(span, 3),
    name: textOf(span, 5),
    kind,
    start: numberOf(span, 7),
    end: numberOf(span, 8),
    attributes: attributesOf(span, 9),
    events: messagesOf(span, 11).length,
    links: messagesOf(span, 13).map((link) => ({
      traceId: hexOf(link, 1),
      spanId: hexOf(link, 2),
    })),
    status: code,
    message: textOf(status, 2),
    resource,
    scope,
  }
}

function attributesOf(message: Message, field: number): Record<string, unknown> {
  const pairs = messagesOf(message, field).map((pair) => {
    const [value = new Map()] = messagesOf(pair, 2)
    // The values are strings or integers.
    return [textOf(pair, 1), value.has(1) ? textOf(value, 1) : Number(numberOf(value, 3))] as const
  })
  return Object.fromEntries(pairs)
}
