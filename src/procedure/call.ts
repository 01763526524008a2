/** A call, which everything from the surfaces to the stores receives, and the operation that it calls. */
import type { z } from 'zod'
import type { Deadline, WithDeadline } from '../../db/deadline.ts'
import type { KeyOfRow } from '../../db/plans/creations.ts'
import { problem, problemOfInput } from '../errors/problem.ts'
import type { Caller } from '../keys/key.ts'
import type { RestMeta } from './meta.ts'
import type { Page } from './paging.ts'

/** What all calls of a process share. `Stores` are those of the product. */
export interface Shared<Stores = unknown> {
  /** The stores outside transactions, made by the product's `createStores` in process/start.ts. */
  readonly stores: Stores
  /**
   * Runs `work` in a transaction, again after an attempt that certainly had no effect. Throws the errors of
   * `work`, and DatabaseUnavailableError.
   */
  transact<Result>(work: (stores: Stores) => Promise<Result>, deadline: Deadline): Promise<Result>
  readonly keyedWrites: KeyedWrites<Stores>
}

/** What a mutation does, by the call that it receives: with the stores of the transaction. */
export type Work<Stores, Output> = (call: Call<Stores>) => Promise<Output>

/** How a store creates rows of a kind: `create` of write.ts inserts one by it. */
export interface Creation<Input, Output> {
  /** Returns the output of a row, by its id and the input. */
  output(id: bigint, input: Input): Output
  /**
   * Inserts a row, and returns its id. With a key, which a store in memory never receives, the row and the key are
   * stored in one transaction, by one attempt.
   */
  insert(call: WithDeadline, input: Input, key?: KeyOfRow): Promise<bigint>
}

/**
 * Mutations with an Idempotency-Key, for the holder of the API key alone. If the key was used before, `runWork` and
 * `create` return the output of that call; they throw CONFLICT while that call is running, and UNPROCESSABLE_CONTENT if it
 * was another one. They make up to three attempts, and six after conflicts with other transactions: to
 * repeat is safe, because the key is looked up first. They throw DatabaseUnavailableError.
 */
export interface KeyedWrites<Stores> {
  /** Returns the key of a call; undefined without one. Throws BAD_REQUEST for an invalid header. */
  keyOf(call: Call<Stores>): string | undefined
  /** Runs `work` in a transaction that also stores the key and the checked output. Throws the errors of `work`. */
  runWork<Output>(call: Call<Stores>, key: string, work: Work<Stores, Output>): Promise<Output>
  /** Creates a row in a transaction, which concurrent calls share, with the key and the checked output. Throws DuplicateError. */
  create<Input, Output>(
    call: Call<Stores>,
    key: string,
    creation: Creation<Input, Output>,
    input: Input,
  ): Promise<Output>
}

/** What the calls of a request have in common: those of a batch. */
export interface CallsOfRequest<Stores = unknown> {
  readonly service: Shared<Stores>
  /** The caller, whose API key allows the calls. */
  readonly caller: Caller
  /** When everything that the calls wait for ends. */
  readonly deadline: Deadline
  /** The header Idempotency-Key, unparsed. */
  readonly idempotencyHeader: string | undefined
}

/** A call: `ctx` in resolvers. */
export interface Call<Stores = unknown> extends CallsOfRequest<Stores> {
  /** What is called. */
  readonly operation: Operation
  /** The checked input. */
  readonly input: unknown
  /** The stores; those of the transaction in the work of `write` and `writeIdempotent`. */
  readonly stores: Stores
  /**
   * What `write`, `writeIdempotent` or `create` has returned: a mutation must return it. tRPC gives a resolver the
   * type of its output, so the type cannot say so.
   */
  written: { output: unknown } | undefined
}

/** What a resolver receives, of the options of tRPC. */
export interface Options<Input> {
  ctx: Call
  input: Input
}

type Resolver = (options: Options<unknown>) => Promise<unknown>

/** A procedure as both surfaces call it. */
export class Operation {
  /** The name of the procedure, in the log, the metrics and the span, too. */
  readonly name: string
  /** A mutation needs an API key that may write. */
  readonly type: 'query' | 'mutation'
  readonly rest: RestMeta
  readonly input: z.ZodType
  /** The schema of the output; in a list, of the items of a page. */
  readonly output: z.ZodType
  /** Whether the resolver returns a page. */
  readonly isPaged: boolean
  readonly #resolver: Resolver

  constructor(
    parts: Pick<Operation, 'name' | 'type' | 'rest' | 'input' | 'output' | 'isPaged'>,
    resolver: Resolver,
  ) {
    this.name = parts.name
    this.type = parts.type
    this.rest = parts.rest
    this.input = parts.input
    this.output = parts.output
    this.isPaged = parts.isPaged
    this.#resolver = resolver
  }

  /**
   * Checks the input, calls the resolver, and returns its checked output; of a list, a page. Throws
   * BAD_REQUEST for an input that its schema rejects, and the errors of the resolver. tRPC's own call
   * costs 20 µs, because it copies its options five times, and this one 1 µs.
   */
  async run(request: CallsOfRequest, input: unknown): Promise<unknown> {
    const { success, data, error } = this.input.safeParse(input)
    if (!success) throw problemOfInput(error)
    const { stores } = request.service
    const call: Call = { ...request, operation: this, input: data, stores, written: undefined }
    const made = await this.#resolver({ ctx: call, input: data })
    if (this.type === 'query')
      return this.isPaged ? this.#checkPage(made as Page) : this.checkOutput(made)
    // The output is checked already: before its effect. Here it could be one of an earlier release, kept with
    // an Idempotency-Key.
    if (call.written && call.written.output === made) return made
    const functions = 'write(…), writeIdempotent(…) or create(…)'
    throw new TypeError(`The resolver of ${this.name} must return the output of ${functions}`)
  }

  /** Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects. */
  checkOutput(output: unknown): unknown {
    const { success, data, error } = this.output.safeParse(output)
    if (success) return data
    const message = `The output of ${this.name} does not fit its schema`
    throw problem('internal', new Error(message, { cause: error }))
  }

  #checkPage({ items, next }: Page): Page {
    return { items: this.checkOutput(items) as unknown[], next }
  }
}
