/** A REST client that checks every response against the OpenAPI document of the service. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expect, vi } from 'vitest'
import { everyHeader } from './expect.ts'

/** A response, with exact integers in its body. */
export interface Answer {
  status: number
  headers: Headers
  text: string
  /** Integers are numbers if these are exact, else bigints. Undefined without content. */
  body: unknown
}

export interface RestInit {
  /** Override the default headers; undefined removes a header. */
  headers?: Record<string, string | undefined>
  /** Strings and bytes are sent unchanged, other values as JSON with exact bigints. */
  body?: unknown
}

/** Headers are an object, so that a test can add one; undefined removes a default. */
export type KeyedInit = Omit<RequestInit, 'headers'> & Pick<RestInit, 'headers'>

export type KeyedFetch = (path: string, init?: KeyedInit) => Promise<Response>

/** Makes fetch for the service at `origin`: with an API key, with bodies as JSON, without redirects. */
export function keyedFetch(origin: string, key: string): KeyedFetch {
  return (path, { headers, ...init } = {}) => {
    const all: RestInit['headers'] = {
      authorization: `Bearer ${key}`,
      ...(init.body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    }
    const isSent = (entry: [string, unknown]): entry is [string, string] => entry[1] !== undefined
    const sent = Object.entries(all).filter(isSent)
    return fetch(origin + path, { ...init, redirect: 'manual', headers: sent })
  }
}

export type RestClient = (method: string, path: string, init?: RestInit) => Promise<Answer>

/** Makes a client for `/v1` of the service at `origin`, with an API key. */
export function restClient(origin: string, key: string): RestClient {
  let check: Promise<Check> | undefined
  return async (method, path, { headers = {}, body } = {}) => {
    const sent = body === undefined ? {} : { body: toBody(body) }
    const response = await keyedFetch(origin, key)(`/v1${path}`, { method, headers, ...sent })
    const text = await response.text()
    check ??= documentCheck(origin)
    const answer = {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? undefined : parseExact(text),
    }
    ;(await check)(method, path, answer)
    return answer
  }
}

function toBody(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body
  return body instanceof Uint8Array ? new Uint8Array(body) : stringifyExact(body)
}

/** Writes JSON with exact bigints. */
export function stringifyExact(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === 'bigint' ? JSON.rawJSON(String(item)) : item,
  )
}

/** Parses JSON exactly: integers beyond the safe ones become bigints. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) => {
    const isLarge = Number.isInteger(value) && !Number.isSafeInteger(value)
    return isLarge && context?.source ? BigInt(context.source) : value
  })
}

type Check = (method: string, path: string, answer: Answer) => void

interface Operation {
  responses: Record<string, { headers?: Record<string, { $ref: string }> }>
}

/** The check of each document, without its servers: validators are slow to compile. */
const checks = new Map<string, Check>()

async function documentCheck(origin: string): Promise<Check> {
  // The first request builds the document, which may take longer than the timeouts of some tests.
  const { servers: _, ...document } = await vi.waitFor(
    async () => JSON.parse(await (await fetch(`${origin}/v1/openapi.json`)).text()),
    30_000,
  )
  const text = JSON.stringify(document)
  const check = checks.get(text) ?? checkBy(document)
  checks.set(text, check)
  return check
}

interface OpenApi {
  paths: Record<string, Record<string, Operation>>
  components: { headers: Record<string, { required?: boolean; schema: { type?: string } }> }
}

function checkBy(document: OpenApi): Check {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema(closed(document), 'openapi')
  const pointerOf = (text: string) => text.replaceAll('~', '~0').replaceAll('/', '~1')
  const validate = (pointer: string, data: unknown) => {
    const validator = ajv.getSchema(`openapi#${pointer}`)
    if (!validator) throw new Error(`The document has no ${pointer}`)
    expect(
      validator(data),
      `${pointer}: ${ajv.errorsText(validator.errors)} in ${JSON.stringify(data)}`,
    ).toBe(true)
  }
  const templates = byPrecedence(Object.keys(document.paths))
  const find = (method: string, path: string): [string, Operation] | undefined => {
    const segments = (path.split('?')[0] ?? '').split('/')
    const template = templates.find((known) => matches(known.split('/'), segments))
    if (template === undefined) return undefined
    const verb = (method === 'HEAD' ? 'GET' : method).toLowerCase()
    const operation = document.paths[template]?.[verb]
    return operation && [`/paths/${pointerOf(template)}/${verb}`, operation]
  }

  return (method, path, { status, headers, text }) => {
    expect(headers.get('content-type')).toBe(status === 204 ? null : 'application/json')
    if (status === 204) expect(text).toBe('')
    const found = find(method, path)
    // A path without an operation returns an Error, too.
    if (!found) {
      if (path !== '/openapi.json' && method !== 'HEAD')
        validate('/components/schemas/Error', JSON.parse(text))
      return
    }
    const [pointer, operation] = found
    const response = operation.responses[status]
    expect(response, `${pointer} documents no ${status}: ${text}`).toBeDefined()
    const documented = Object.keys(response?.headers ?? {})
    for (const name of documented) {
      const definition = document.components.headers[name]
      if (!definition) throw new Error(`The document has no header ${name}`)
      const value = headers.get(name)
      if (definition.required) expect(value, `${pointer} ${status} has no ${name}`).not.toBeNull()
      if (value !== null && definition.schema.type === 'integer') expect(value).toMatch(/^\d+$/)
      else if (value !== null) validate(`/components/headers/${name}/schema`, value)
    }
    const undocumented = [...headers.keys()].filter(
      (name) => !ordinary.has(name) && !documented.some((known) => known.toLowerCase() === name),
    )
    expect(undocumented, `${pointer} ${status} has headers that are not documented`).toEqual([])
    if (method !== 'HEAD' && status !== 204) {
      const { error, ...body } = JSON.parse(text)
      // The field of tRPC's clients, which the document does not have.
      if (isRefusal(status)) expect(error).toEqual(expect.any(String))
      const value = isRefusal(status) ? body : JSON.parse(text)
      validate(`${pointer}/responses/${status}/content/application~1json/schema`, value)
      if (status >= 400) expect(Object.keys(value)).toEqual(['code', 'message', 'status'])
      if (status >= 400) expect(value.status).toBe(status)
    }
  }
}

/** A document whose objects have no other fields: its clients must accept new ones, these tests must not. */
const closed = (document: OpenApi): object =>
  JSON.parse(JSON.stringify(document), (_key, value) =>
    value?.type === 'object' && value.properties
      ? { ...value, additionalProperties: false }
      : value,
  )

/** The templates by precedence: a literal segment before a parameter, from the left. */
function byPrecedence(templates: string[]): string[] {
  const last = String.fromCodePoint(0x10ffff)
  const key = (template: string) => template.replaceAll(/\{.+?\}/g, last)
  return templates.toSorted((one, other) => (key(one) < key(other) ? -1 : 1))
}

const matches = (template: string[], segments: string[]): boolean =>
  template.length === segments.length &&
  template.every((part, index) => {
    const segment = segments[index] ?? ''
    return part.startsWith('{') ? segment !== '' : part === readable(segment)
  })

/** Decodes a segment, or returns it unchanged if its percent-encoding is invalid. */
function readable(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
/** Whether a request is rejected with this status before its surface is known. */
const isRefusal = (status: number) => [408, 431].includes(status)

/** Headers of HTTP and its security, not of the operation. */
const ordinary = new Set([
  ...Object.keys(everyHeader),
  'access-control-allow-origin',
  'access-control-expose-headers',
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
  'vary',
])
