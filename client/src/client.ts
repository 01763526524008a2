/** What a TypeScript frontend imports: the typed client, and what goes with it. */
import {
  createTRPCClient,
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
import { MAX_BATCH, MAX_SHARE, transformer } from './encoding.ts'
import type { AppRouter } from './interface.ts'

export type { AppRouter }
export { transformer }

/** What the procedures take and give, by their names. */
export type PetstoreInputs = inferRouterInputs<AppRouter>
export type PetstoreOutputs = inferRouterOutputs<AppRouter>

/** An animal of the catalogue. */
export type Pet = PetstoreOutputs['createPet']
/** An animal to add; `status` is `available` unless it says otherwise. */
export type NewPet = PetstoreInputs['createPet']
/** Availability of an animal. */
export type PetStatus = Pet['status']

export type PetstoreClient = TRPCClient<AppRouter>

export interface PetstoreClientOptions {
  /** The address of the service's tRPC interface, such as `https://pets.example/trpc`. */
  url: string
  apiKey: string
}

/**
 * A client of the service. The queries of one tick travel in one request, and its mutations in
 * another; a call with a large input, or with an idempotency key, travels alone. What the service
 * refuses rejects with ApiError; a service out of reach, or an answer that is not the service's,
 * with another TRPCClientError.
 *
 * A creation with `{ context: { idempotencyKey } }` can be repeated until its answer arrives: the
 * service adds one animal for a key, which is 1 to 255 printable ASCII characters of the caller's
 * choice, best a UUID. Null and undefined are no key; anything else rejects, with nothing sent.
 */
export function createPetstoreClient({ url, apiKey }: PetstoreClientOptions): PetstoreClient {
  const authorization = `Bearer ${apiKey}`
  return createTRPCClient<AppRouter>({
    links: [
      apiErrors,
      splitLink({
        condition: (op) => hasKey(op) || isLarge(op),
        true: httpLink({
          url,
          transformer,
          headers: ({ op }) => ({
            authorization,
            ...(hasKey(op) && { 'Idempotency-Key': quoted(op.context.idempotencyKey) }),
          }),
        }),
        false: httpBatchLink({
          url,
          transformer,
          maxItems: MAX_BATCH,
          headers: { authorization },
        }),
      }),
    ],
  })
}

// An Idempotency-Key goes with one call, not with a batch.
const hasKey = ({ context }: Operation) => (context.idempotencyKey ?? null) !== null

/** The header's string (RFC 9651, section 3.3.3): JSON escapes what is printable as that does. */
function quoted(key: unknown): string {
  if (typeof key === 'string' && /^[ -~]{1,255}$/.test(key)) return JSON.stringify(key)
  throw new TypeError('idempotencyKey must be a string of 1 to 255 printable ASCII characters')
}

/** Whether a full batch of such inputs might be too large: a batch is refused as a whole. */
function isLarge({ type, input }: Operation): boolean {
  const text = JSON.stringify(transformer.serialize(input))
  return type === 'query'
    ? encodeURIComponent(text).length > MAX_SHARE.query
    : new TextEncoder().encode(text).length > MAX_SHARE.mutation
}

type ErrorData = NonNullable<TRPCClientError<AppRouter>['data']>

/** An error that the service answered with. */
export interface ApiError extends TRPCClientError<AppRouter> {
  /** Says for programs what went wrong, such as `NOT_FOUND`. */
  code: ErrorData['code']
  /** The HTTP status code. */
  status: number
  /**
   * What is wrong with the input, by the name of the field: `{ name: 'is required' }`; under `''`
   * where the input is no object.
   */
  fields: Partial<Record<string, string>>
}

/** Whether a client of `createPetstoreClient` threw this because the service refused or failed. */
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
 * The hash of a query key, for TanStack Query's option of that name: as its own, but where that
 * throws on a bigint, this writes it out. `7` and `7n` are one key, as they are one pet.
 */
export const queryKeyHashFn = (queryKey: readonly unknown[]): string =>
  JSON.stringify(queryKey, (_name, value: unknown) => {
    if (typeof value === 'bigint') {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : { bigint: String(value) }
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
