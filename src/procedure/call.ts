/** A call, which everything from the surfaces to the stores receives, and the operation that it calls. */
import type { z } from 'zod'
import type { Deadline, WithDeadline } from '../../db/deadline.ts'
import type { KeyOfRow } from '../../db/plans/creations.ts'
import { problem, problemOfInput } from '../errors/problem.ts'
import type { Caller } from '../keys/key.ts'
import type { RestMeta } from './meta.ts'
import type { Page } from './paging.ts'

/** The type of `ctx.stores`. The store of a resource declares this interface again with itself: see pets/store.ts. */
// biome-ignore lint/suspicious/noEmptyInterface: resources add to it.
export interface Stores {}

/** What all calls of a process share. */
export interface Shared {
  /** The stores outside transactions. */
  stores: Stores
  /**
   * Runs `work` in a transaction, again after an attempt that certainly had no effect. Throws the errors of
   * `work`, and DatabaseUnavailableError.
   */
  transact<Result>(work: (stores: Stores) => Promise<Result>, deadline: Deadline): Promise<Result>
  keyedWrites: KeyedWrites
}

/** What a mutation does, by the call that it receives: with the stores of the transaction. */
export type Work<Output> = (call: Call) => Promise<Output>

/** A kind of row that a store creates. It is data of the store, which `create` of write.ts reads. */
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
 * Mutations with an Idempotency-Key, for the holder of the API key alone. If the key was used before, both methods
 * return the output of that call; they throw CONFLICT while that call is running, and UNPROCESSABLE_CONTENT if it
 * was another one. They make up to three attempts, and up to six in conflicts with other transactions, which are
 * safe because of the key. They throw DatabaseUnavailableError.
 */
export interface KeyedWrites {
  /** Runs `work` in a transaction that also stores the key and the checked output. Throws the errors of `work`. */
  run<Output>(call: Call, key: string, work: Work<Output>): Promise<Output>
  /** Creates a row in a transaction, which concurrent calls share, with the key and the checked output. Throws DuplicateError. */
  create<Input, Output>(
    call: Call,
    key: string,
    creation: Creation<Input, Output>,
    input: Input,
  ): Promise<Output>
}

/** A call: `ctx` in resolvers. Each call of a batch is one of its own. */
export class Call {
  readonly service: Shared
  /** What is called. */
  operation!: Operation
  /** The caller, whose API key allows the call. */
  caller!: Caller
  /** When everything that the call waits for ends. */
  deadline!: Deadline
  /** The stores; those of the transaction in the work of `write` and `writeIdempotent`. */
  stores: Stores
  /** The header Idempotency-Key, unparsed. */
  idempotencyHeader: string | undefined
  /** The input, once it is checked. */
  input: unknown
  /** Whether the resolver has called `write`, `writeIdempotent` or `create`. */
  writes = false

  constructor(service: Shared) {
    this.service = service
    this.stores = service.stores
  }

  /** Returns a call of this operation by the same caller: one of a batch. */
  of(operation: Operation): Call {
    const call = new Call(this.service)
    call.operation = operation
    call.caller = this.caller
    call.deadline = this.deadline
    call.idempotencyHeader = this.idempotencyHeader
    return call
  }

  /** Returns this call in a transaction, with its stores. */
  inside(stores: Stores): Call {
    const call = this.of(this.operation)
    call.stores = stores
    call.input = this.input
    return call
  }
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
  /** The description; undefined for what only tRPC has. */
  readonly rest: RestMeta | undefined
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
  async run(call: Call, input: unknown): Promise<unknown> {
    const { success, data, error } = this.input.safeParse(input)
    if (!success) throw problemOfInput(error)
    call.input = data
    const made = await this.#resolver({ ctx: call, input: data })
    if (this.type === 'query')
      return this.isPaged ? this.#checkPage(made as Page) : this.check(made)
    // The output is checked already: before the commit. Here it could be one of an earlier release, kept with
    // an Idempotency-Key.
    if (call.writes) return made
    throw new TypeError(
      `The resolver of ${this.name} must return write(…), writeIdempotent(…) or create(…)`,
    )
  }

  /** Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects. */
  check(output: unknown): unknown {
    const { success, data, error } = this.output.safeParse(output)
    if (success) return data
    const message = `The output of ${this.name} does not fit its schema`
    throw problem('internal', new Error(message, { cause: error }))
  }

  #checkPage({ items, next }: Page): Page {
    return { items: this.check(items) as unknown[], next }
  }
}
