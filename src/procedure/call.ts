/** A call, which everything from the surfaces to the stores receives. */
import type { Creation, Deadline } from '../../db/index.ts'
import type { Problem } from '../errors/problem.ts'
import type { Caller } from '../keys/key.ts'
import type { RequestHeaders } from './headers.ts'
import type { AccessMeta, RestMeta } from './meta.ts'

/** What the calls of a request have in common: those of a batch. */
export interface CallsOfRequest<Stores = unknown> {
  readonly shared: Shared<Stores>
  /** The caller, whose API key allows the calls. */
  readonly caller: Caller
  /** When everything that the calls wait for ends. */
  readonly deadline: Deadline
  /** The headers of the request, but for `Authorization`. */
  readonly headers: RequestHeaders
  /** The header Idempotency-Key, unparsed. */
  readonly idempotencyHeader: string | undefined
  /** Logs an error of the operation with this name that its answer does not tell. */
  report(error: Problem, name: string): void
}

/** A call: `ctx` in resolvers. */
export interface Call<Stores = unknown> extends CallsOfRequest<Stores> {
  /** What is called. */
  readonly operation: CalledOperation
  /**
   * The user behind the API key of a frontend, where a middleware names one: a text that no two users have. Its
   * Idempotency-Keys are not those of another one.
   */
  readonly actor?: string | undefined
  /** The stores; those of the transaction in the work of `write` and `writeIdempotent`. */
  readonly stores: Stores
  /** An object of its own, which the copies of `ctx` share. */
  readonly progress: Progress
}

/** How far a call has come. */
interface Progress {
  /**
   * The checked input; while middlewares run, of the schemas so far. The fingerprint of an Idempotency-Key is its hash,
   * whatever a middleware passes on in its place: the same request has the same one.
   */
  input: unknown
  /**
   * What a function of write.ts has returned last: a mutation must return it. tRPC gives a resolver the type of its
   * output, so the type cannot say so.
   */
  written: { output: unknown } | undefined
}

/** What a call knows of its operation, which is in operation.ts. */
export interface CalledOperation {
  /** The name of the procedure, in the log, the metrics and the span, too; in a nested router `pets.list`. */
  readonly name: string
  /** A mutation needs an API key that may write. */
  readonly type: 'query' | 'mutation'
  /** Undefined for a procedure that tRPC alone has. */
  readonly rest: RestMeta | undefined
  /** What its middlewares ask of a call. */
  readonly access: AccessMeta
  /**
   * Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects, and, where
   * tRPC alone has the procedure, for one without an encoding, such as a function.
   */
  checkOutput(output: unknown): unknown
}

/** What all calls of a process share. `Stores` are those of the product. */
export interface Shared<Stores = unknown> {
  /** The stores outside transactions, made by the product's `createStores` in process/start.ts. */
  readonly stores: Stores
  /**
   * Runs `work` in a transaction, again after an attempt that certainly had no effect. Throws the errors of
   * `work`, and DatabaseUnavailableError.
   */
  transact<Result>(work: (stores: Stores) => Promise<Result>, deadline: Deadline): Promise<Result>
  readonly keyedWrites: KeyedWrites
}

/**
 * Mutations with an Idempotency-Key, for the holder of the API key and the actor alone. If the key was used before,
 * they return the output of that call; they throw CONFLICT while that call is running, UNPROCESSABLE_CONTENT if it
 * was another one, and BAD_REQUEST for an invalid header. They are repeated after any attempt, as often as
 * db/retry.ts says, because the receipt of the key says whether it had an effect. They throw
 * DatabaseUnavailableError.
 */
export interface KeyedWrites {
  /** Runs `work` in a transaction that also stores the receipt, with the checked output. Throws the errors of `work`. */
  runWork<Context extends Call, Output>(call: Context, work: Work<Context, Output>): Promise<Output>
  /** Creates a row and its receipt in a transaction, which concurrent calls share. Throws DuplicateError. */
  create<Input, Output>(
    call: Call,
    creation: Creation<Input, Output>,
    input: Input,
  ): Promise<Output>
}

/**
 * What a mutation does, by the call that it receives: `ctx`, with the stores of the transaction, and with `signal`, as the
 * options of its resolver have it.
 */
export type Work<Context extends Call, Output> = (
  call: Context & { readonly signal: AbortSignal },
) => Promise<Output>

/**
 * Returns what a product adds to `ctx` of the calls of a request, such as a mailer. The calls of a batch share it:
 * for a public one beside others, `caller` of the request is that of the others. See https://trpc.io/docs/server/context
 */
export type CreateContext<Added extends object = object> = (
  request: CallsOfRequest,
) => Added | Promise<Added>

/** Returns the request with what `createContext` adds. Throws its errors, and TypeError for a field of the service. */
export async function withContext(
  request: CallsOfRequest,
  createContext: CreateContext,
): Promise<CallsOfRequest> {
  const context = await request.deadline.limit(Promise.try(() => createContext(request)))
  if (typeof context !== 'object' || context === null) {
    throw new TypeError(`createContext returns ${context}: it must return an object`)
  }
  const taken = Object.keys(context).find((field) => Object.hasOwn(OWN, field))
  if (taken) throw new TypeError(`createContext returns ${taken}, which is a field of the service`)
  return { ...context, ...request }
}

/** The fields of `ctx` that are of the service. A middleware may name the actor. */
export const OWN: Record<Exclude<keyof Call, 'actor'>, true> = {
  shared: true,
  caller: true,
  deadline: true,
  headers: true,
  idempotencyHeader: true,
  report: true,
  operation: true,
  stores: true,
  progress: true,
}
