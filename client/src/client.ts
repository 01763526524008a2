/** The typed client for TypeScript frontends. */
import {
  createTRPCClient,
  type HTTPBatchLinkOptions,
  httpBatchLink,
  httpLink,
  isTRPCClientError,
  type Operation,
  splitLink,
  type TRPCClient,
  type TRPCClientError,
  type TRPCLink,
} from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { observable } from '@trpc/server/observable'
import { MAX_BATCH, MAX_SHARE, transformer } from '../../src/wire/encoding.ts'
import type { AppRouter } from './interface.ts'

export type { AppRouter }
export { transformer }

/** The inputs and the outputs of the procedures, by their names. */
export type PetstoreInputs = inferRouterInputs<AppRouter>
export type PetstoreOutputs = inferRouterOutputs<AppRouter>

/** An animal of the catalogue. */
export type Pet = PetstoreOutputs['createPet']
/** An animal to add; `status` is `available` by default. */
export type NewPet = PetstoreInputs['createPet']
/** Availability of an animal. */
export type PetStatus = Pet['status']

export type PetstoreClient = TRPCClient<AppRouter>

type HeadersInit = NonNullable<RequestInit['headers']>
type BatchLinkOptions = HTTPBatchLinkOptions<AppRouter['_def']['_config']['$types']>

export interface PetstoreClientOptions {
  /** The URL of the service's tRPC interface, such as `https://pets.example/trpc`. */
  url: string
  /** The API key; or a function that returns it, which is called for each request, such as for a key that is rotated. */
  apiKey: string | (() => string | Promise<string>)
  /**
   * Further headers, such as those that a gateway before the service requires; or a function that
   * returns them, which is called for each request. `authorization` and `Idempotency-Key` among them are
   * ignored: both are the client's own.
   */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>) | undefined
  /** Sends the requests in place of the global `fetch`, such as that of SvelteKit's `load`. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** The link of tRPC that sends batches: `httpBatchLink` by default, or `httpBatchStreamLink`. */
  batchLink?: ((options: BatchLinkOptions) => TRPCLink<AppRouter>) | undefined
}

/**
 * Returns a client of the service. It sends the queries of one tick in one request, and the mutations
 * in another; a call with a large input or with an idempotency key is a request of its own. A call
 * rejects with ApiError if the service returns an error, and with another TRPCClientError if the
 * service is unreachable or the response is not from it; `httpStatusOf` tells the two apart.
 *
 * A creation with `{ context: { idempotencyKey } }` can be repeated until its answer arrives: the
 * service adds one animal for each key. A key has 1 to 255 printable ASCII characters, best those of
 * `newIdempotencyKey`. Null and undefined mean no key. With any other value the call rejects, and sends
 * nothing.
 */
export function createPetstoreClient(options: PetstoreClientOptions): PetstoreClient {
  return createTRPCClient<AppRouter>({ links: petstoreLinks(options) })
}

/**
 * Returns the links of `createPetstoreClient`, for a tRPC client of your own, which may have other links
 * before them. Without them a client neither sends idempotency keys nor rejects with ApiError.
 */
export function petstoreLinks({
  url,
  apiKey,
  headers,
  fetch: send,
  batchLink = httpBatchLink,
}: PetstoreClientOptions): TRPCLink<AppRouter>[] {
  const headersWith = async (idempotencyKey?: string): Promise<Headers> => {
    const all = new Headers(typeof headers === 'function' ? await headers() : headers)
    all.set('authorization', `Bearer ${typeof apiKey === 'function' ? await apiKey() : apiKey}`)
    // One key for every call would let the service drop all creations but the first.
    all.delete('idempotency-key')
    if (idempotencyKey !== undefined) all.set('idempotency-key', idempotencyKey)
    return all
  }
  const options = {
    url,
    transformer: { input: written, output: transformer },
    fetch: fetchAnswer(send),
  }
  return [
    apiErrors,
    writeInputs,
    splitLink({
      condition: (op) => hasKey(op) || isLarge(op),
      true: httpLink({
        ...options,
        headers: async ({ op }) =>
          headersWith(hasKey(op) ? quoted(op.context.idempotencyKey) : undefined),
      }),
      false: batchLink({ ...options, maxItems: MAX_BATCH, headers: () => headersWith() }),
    }),
  ]
}

/** A response that is incomplete or not of tRPC: a gateway answered in place of the service. */
class ForeignResponseError extends Error {
  override name = 'ForeignResponseError'
  readonly response: Response

  constructor(response: Response) {
    super(`The response is incomplete or not from the service (HTTP status ${response.status})`)
    this.response = response
  }
}

/**
 * Returns the `fetch` of the links. It throws ForeignResponseError for a response that tRPC would fail to
 * read, because tRPC's error would not have the response.
 */
const fetchAnswer =
  (send: PetstoreClientOptions['fetch']) =>
  async (url: string | URL | Request, given: object = {}): Promise<Response> => {
    const init: RequestInit = given
    // tRPC's links pass a text. The global fetch is looked up for each request: MSW replaces it.
    const response = await (send ?? fetch)(url as string, init)
    if (response.ok && asksForLines(init)) {
      if (response.headers.get('content-type')?.startsWith('application/json')) return response
      throw new ForeignResponseError(response)
    }
    const json: unknown = await response.json().catch((cause: unknown) => {
      if (init.signal?.aborted) throw cause
    })
    if (isAnswer(json, response.status >= 400)) return withJson(response, json)
    throw new ForeignResponseError(response)
  }

/** Whether httpBatchStreamLink sends this request: it reads a success from the body, line by line. */
function asksForLines(init: RequestInit): boolean {
  const headers = new Headers(init.headers)
  return (headers.get('trpc-accept') ?? headers.get('accept')) === 'application/jsonl'
}

// A proxy: the response of SvelteKit's `fetch` is one, too, with a `json` that would read the body again.
const withJson = (response: Response, json: unknown): Response =>
  new Proxy(response, {
    get(_, name) {
      if (name === 'json') return async () => json
      const value: unknown = Reflect.get(response, name, response)
      return typeof value === 'function' ? value.bind(response) : value
    },
  })

/**
 * Whether this is an answer of the service, to a call or to a batch. Gateways, too, answer with an `error`, but
 * not in its encoding. For an empty batch tRPC's error has no response.
 */
function isAnswer(json: unknown, isFailure: boolean): boolean {
  if (Array.isArray(json)) return json.length > 0 && json.every((one) => isAnswer(one, isFailure))
  const { error, result } = (json ?? {}) as { error?: unknown; result?: { data?: unknown } }
  return error === undefined ? !isFailure && typeof result?.data === 'string' : isEncoded(error)
}

function isEncoded(value: unknown): boolean {
  try {
    return typeof transformer.deserialize(value as string) === 'object'
  } catch {
    return false
  }
}

/**
 * Returns the HTTP status with which a call was rejected; undefined without a response and for an aborted
 * call.
 */
export function httpStatusOf(thrown: unknown): number | undefined {
  if (isApiError(thrown)) return thrown.status // the response to a batch of several statuses has 207
  if (!isTRPCClientError(thrown)) return undefined
  const { cause, meta } = thrown
  const { response } = cause instanceof ForeignResponseError ? cause : (meta ?? {})
  return (response as Response | undefined)?.status // tRPC's links declare no type for it
}

/** Returns a new idempotency key, a UUID. Unlike `crypto.randomUUID`, it needs no secure context. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  // RFC 9562, section 5.4: version 4, variant 10
  bytes.set(
    [
      ((bytes[6] as number) & 0x0f) | 0x40,
      bytes[7] as number,
      ((bytes[8] as number) & 0x3f) | 0x80,
    ],
    6,
  )
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

// The header Idempotency-Key applies to a whole request, so such a call cannot be part of a batch.
const hasKey = ({ context }: Operation) => (context.idempotencyKey ?? null) !== null

/**
 * Returns the key as a String of RFC 9651, section 3.3.3: for printable ASCII the escapes are those
 * of JSON.
 */
function quoted(key: unknown): string {
  if (typeof key === 'string' && /^[ -~]{1,255}$/.test(key)) return JSON.stringify(key)
  throw new TypeError('idempotencyKey must be a string of 1 to 255 printable ASCII characters')
}

// A batch is sent after its tick, and a retryLink before this one may send the call again later: a caller may
// change an input until then.
const writeInputs: TRPCLink<AppRouter> = () => {
  const texts = new WeakMap<Operation, string>()
  return ({ op, next }) => {
    const text = texts.get(op) ?? transformer.serialize(op.input)
    texts.set(op, text)
    return next({ ...op, input: text })
  }
}

/** The transformer of inputs that `writeInputs` has serialized. */
const written = { ...transformer, serialize: (text: unknown) => text }

/**
 * Whether a full batch of such inputs could exceed the limits: the service rejects the whole batch
 * then.
 */
function isLarge({ type, input }: Operation): boolean {
  const text = JSON.stringify(input)
  return type === 'query'
    ? encodeURIComponent(text).length > MAX_SHARE.query
    : new TextEncoder().encode(text).length > MAX_SHARE.mutation
}

type ErrorData = NonNullable<TRPCClientError<AppRouter>['data']>

/** An error that the service returned. */
export interface ApiError extends TRPCClientError<AppRouter> {
  /** The kind of the error, for programs, such as `NOT_FOUND`. */
  code: ErrorData['code']
  /** The HTTP status code. */
  status: number
  /**
   * What is wrong with each field of the input: `{ name: 'is required' }`. An input that is no object
   * has its message under `''`.
   */
  fields: Partial<Record<string, string>>
}

/** Whether the service returned this error, to a client with the links of `petstoreLinks`. */
export const isApiError = (thrown: unknown): thrown is ApiError =>
  isTRPCClientError(thrown) && 'status' in thrown

// Not a subclass: the constructor of TRPCClientError resets the prototype.
const apiErrors: TRPCLink<AppRouter> =
  () =>
  ({ op, next }) =>
    observable((observer) =>
      next(op).subscribe({
        ...observer,
        error(error) {
          const { data } = error
          observer.error(
            data
              ? Object.assign(error, {
                  code: data.code,
                  status: data.httpStatus,
                  fields: data.fields ?? {},
                })
              : error,
          )
        },
      }),
    )

/**
 * Returns the hash of a query key, for the option `queryKeyHashFn` of TanStack Query. It differs from
 * the default only for a bigint, on which the default throws. `7` and `7n` have the same hash, because
 * they are the id of the same pet.
 */
export const queryKeyHashFn = (queryKey: readonly unknown[]): string =>
  JSON.stringify(queryKey, function (this: Record<string, unknown>, name, value: unknown) {
    // The value itself: JSON.stringify has called the toJSON that a polyfill gives bigints, if any.
    const own = this[name]
    if (typeof own === 'bigint') {
      const number = Number(own)
      return Number.isSafeInteger(number) ? number : { bigint: String(own) }
    }
    return isPlainObject(value) ? sorted(value) : value
  })

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const sorted = (value: object) =>
  Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
