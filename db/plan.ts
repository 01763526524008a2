/** Plans: how concurrent calls share a session. A plan is data, which the queue reads. */
import type { Compilable, CompiledQuery, Kysely, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import type { Session, Statement } from './session.ts'
import type { Tables } from './tables.ts'

/** What a lane is used for. `ahead` is for readiness: before all others, and if need be one lane beyond all. */
export type Use = 'read' | 'write' | 'ahead'

/** Maximum number of inputs of a statement or transaction, in a database of this process and on a server. */
interface MaxSize {
  readonly inProcess: number
  readonly server: number
}

/** Returns a placeholder for the value that `read` returns of an input at each execution. */
export type Value<Input> = <Type>(read: (input: Input) => Type) => Type

/** Calls that share statements. `Shared` is the output of an input, which the calls with inputs of one name share. */
export interface Plan<Input, Output, Shared = unknown> {
  readonly use: 'read' | 'write'
  readonly maxSize: MaxSize
  /** Whether calls to a server do not wait for those of the next turn of the event loop. */
  readonly isEarly?: boolean
  /** The kind of an input: only inputs of one kind share a statement. */
  kindOf?(input: Input): string
  /** The name of an input: waiting inputs of one name are one input, whose output their calls share. */
  nameOf?(input: Input): bigint | string
  /** The number of inputs that the statement for so many inputs has: the first one takes the other places. */
  sizeOf?(count: number): number
  /**
   * Builds the statement for several inputs of a kind, which is compiled once for each number of them.
   * `values` has a `value` for each input, to put in place of what differs between executions:
   *
   * `where('id', '=', value((pet) => pet.id)).limit(20)` → `where id = ? limit ?` with the parameters
   * `[Placeholder, 20]`, which are `[7n, 20]` in the execution with `{ id: 7n }`
   */
  build(db: Kysely<Tables>, values: Value<Input>[], kind: string): Compilable
  /** Returns the outputs, in the order of the inputs. */
  split(result: QueryResult<never>, inputs: Input[]): Shared[]
  /** Returns the output of one of the calls that share it, which may change it. */
  output(shared: Shared): Output
  /** Whether one input alone caused this error. Each input then has a statement of its own. */
  isOfOne?(error: unknown): boolean
  /** See `Statement`. */
  needsConsecutiveIds?(count: number): boolean
}

/** Works that share a transaction. */
export interface WorkPlan<Work, Output> {
  readonly use: 'write'
  readonly maxSize: MaxSize
  /**
   * Returns the outputs of the works, in their order. Throws PartialError if the failures are those of some
   * works, and the others can be repeated without them.
   */
  run(session: Session, works: Work[], deadline: Deadline): Promise<Output[]>
}

/** Calls each of which has a session for itself. */
export interface LoanPlan {
  readonly use: Use
  readonly maxSize: MaxSize
  readonly isLoan: true
}

/** Some of several works failed, so that the transaction was rolled back with the effects of all. */
export class PartialError extends Error {
  /** The errors of the works, by their places. */
  readonly failures: Map<number, unknown>

  constructor(failures: Map<number, unknown>) {
    super('Some works of a shared transaction failed')
    this.failures = failures
  }
}

/** The compiled statements of a plan and a kind, by the number of their inputs. */
export type Compiled = Map<number, CompiledQuery>

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

/** Returns the statement of a plan for these inputs, with their values. */
export function statementOf<Input, Output>(
  plan: Plan<Input, Output>,
  kind: string,
  compiled: Compiled,
  db: Kysely<Tables>,
  inputs: Input[],
): Statement {
  const size = plan.sizeOf?.(inputs.length) ?? inputs.length
  let query = compiled.get(size)
  if (!query) {
    const values = Array.from({ length: size }, (_, index) => valueAt<Input>(index))
    query = plan.build(db, values, kind).compile()
    compiled.set(size, query)
  }
  const parameters = query.parameters.map((parameter) =>
    parameter instanceof Placeholder ? parameter.valueOf(inputs) : parameter,
  )
  return {
    ...query,
    parameters,
    isRead: plan.use === 'read',
    needsConsecutiveIds: plan.needsConsecutiveIds?.(inputs.length) ?? false,
  }
}
