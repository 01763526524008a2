/** Plans: how concurrent calls share a session. A plan is data, which the queue and transactions read. */
import type { CompiledQuery, QueryResult } from 'kysely'
import type { Builder, Query } from './builder.ts'
import type { Deadline } from './deadline.ts'
import type { Session } from './session.ts'

/** What a session is used for. Readiness goes first, and may have one session more than the maximum. */
export type Use = 'read' | 'write' | 'readiness'

/** Returns a placeholder for the value that `read` returns of an input at each execution. */
export type Value<Input> = <Type>(read: (input: Input) => Type) => Type

/** What all plans have. `Result` is that of an input; `Output` is what each of its callers gets of it. */
interface Common<Input, Output, Result> {
  readonly use: 'read' | 'write'
  /** Maximum number of inputs that run together. */
  readonly maxSize: number
  /** Whether inputs run together only on a session with consecutive ids. */
  readonly needsConsecutiveIds?: boolean
  /** The kind of an input: only inputs of one kind run together. */
  kindOf?(input: Input): string
  /** The identity of an input: those that wait at the same time with one identity run as one, and share its result. */
  identityOf?(input: Input): bigint | string
  /** Returns the output of one of the callers that share a result, which may change it. */
  output(result: Result): Output
  /** Whether one of several inputs may be to blame for an error: then the others run without it. */
  blamesOne?(error: unknown): boolean
}

/** A plan whose inputs share a statement. */
export interface StatementPlan<Input, Output, Result = unknown>
  extends Common<Input, Output, Result> {
  readonly commitTogether?: undefined
  /** Whether the statement has room for a power of two of inputs, so that there are few: spare places repeat the first one. */
  readonly isPadded?: boolean
  /** Whether a result has many rows. Only such reads share them in the embedded database: one row is read as fast. */
  readonly isList?: boolean
  /**
   * Builds the statement for several inputs of a kind, which is compiled once for each number of places.
   * `values` has a `value` for each input, to put in place of what differs between executions:
   *
   * `where('id', '=', value((pet) => pet.id)).limit(20)` → `where id = ? limit ?` with the parameters
   * `[Placeholder, 20]`, which are `[7n, 20]` in the execution with `{ id: 7n }`
   */
  build(db: Builder, values: Value<Input>[], kind: string): Query
  /** Returns the results, in the order of the inputs. */
  split(result: QueryResult<never>, inputs: Input[]): Result[]
}

/** A plan whose inputs share a transaction. It is not repeated: another attempt needs another look at the database. */
export interface TransactionPlan<Input, Output, Result = unknown>
  extends Common<Input, Output, Result> {
  readonly use: 'write'
  /** Runs the inputs in a transaction on the session, and returns their results, in their order. */
  commitTogether(
    inputs: Input[],
    session: Session,
    deadline: Deadline,
    statements: Statements,
  ): Promise<Result[]>
}

export type Plan<Input, Output, Result = unknown> =
  | StatementPlan<Input, Output, Result>
  | TransactionPlan<Input, Output, Result>

/** A plan whose inputs and outputs the queue does not know. */
export type AnyPlan = Plan<never, unknown>

/** What stands in a compiled statement for a value of each execution. */
class Placeholder<Input> {
  readonly #index: number
  readonly #read: (input: Input) => unknown

  /** `read` returns the value of the input at this place. */
  constructor(index: number, read: (input: Input) => unknown) {
    this.#index = index
    this.#read = read
  }

  /** Returns the value for these inputs. A place that they lack has that of the first one. */
  valueOf(inputs: Input[]): unknown {
    return this.#read((inputs[this.#index] ?? inputs[0]) as Input)
  }
}

// Kysely accepts any object as a value, and returns it among the parameters.
const valueAt =
  <Input>(index: number): Value<Input> =>
  (read) =>
    new Placeholder<Input>(index, read) as never

/** The statements of plans. Each is compiled once, for all connections and transactions of a database. */
export class Statements {
  readonly builder: Builder
  /** By plan, kind and number of places. Nothing is removed. */
  readonly #compiled = new Map<unknown, Map<string, Map<number, CompiledQuery>>>()

  constructor(builder: Builder) {
    this.builder = builder
  }

  /**
   * Runs inputs of one kind on a session, by one statement or in one transaction, and returns their results in order.
   * Throws the errors of db/errors.ts.
   */
  async run<Input, Result>(
    plan: Plan<Input, unknown, Result>,
    inputs: Input[],
    session: Session,
    deadline: Deadline,
  ): Promise<Result[]> {
    if (plan.commitTogether) return await plan.commitTogether(inputs, session, deadline, this)
    const result = await session.execute<never>(this.statementOf(plan, inputs), deadline)
    return plan.split(result, inputs)
  }

  /** Returns the statement of inputs of one kind. */
  statementOf<Input>(plan: StatementPlan<Input, unknown>, inputs: Input[]): CompiledQuery {
    const kind = plan.kindOf?.(inputs[0] as Input) ?? '' // a plan runs one input at least
    const size = plan.isPadded ? paddedSize(inputs.length, plan.maxSize) : inputs.length
    const known = this.#compiled.get(plan)?.get(kind)?.get(size)
    const query = known ?? this.#compile(plan, kind, size)
    const parameters = query.parameters.map((parameter) =>
      parameter instanceof Placeholder ? parameter.valueOf(inputs) : parameter,
    )
    return { ...query, parameters }
  }

  #compile<Input>(plan: StatementPlan<Input, unknown>, kind: string, size: number): CompiledQuery {
    const values = Array.from({ length: size }, (_, index) => valueAt<Input>(index))
    const query = plan.build(this.builder, values, kind).compile(this.builder.kysely)
    const kinds = this.#compiled.get(plan) ?? new Map<string, Map<number, CompiledQuery>>()
    const sizes = kinds.get(kind) ?? new Map<number, CompiledQuery>()
    this.#compiled.set(plan, kinds.set(kind, sizes.set(size, query)))
    return query
  }
}

const paddedSize = (count: number, maxSize: number): number =>
  Math.min(2 ** Math.ceil(Math.log2(count)), maxSize)
