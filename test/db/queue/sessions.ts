/** A queue over sessions that the test controls: it opens them, and ends each of their statements. */
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  CompiledQuery as statementOf,
} from 'kysely'
import type { Engine } from '../../../db/database.ts'
import { Deadline } from '../../../db/deadline.ts'
import type { Usage } from '../../../db/line.ts'
import { type StatementPlan, Statements } from '../../../db/plan.ts'
import { Queue } from '../../../db/queue.ts'
import type { Demand, Session, Sessions } from '../../../db/session.ts'
import type { Tables } from '../../../db/tables.ts'

/** What a session executes, until the test ends it or its deadline does. */
export interface Running {
  session: ControlledSession
  /** The name of the plan and the kind of its inputs; `begin` and `commit` of a transaction. */
  sql: string
  inputs: unknown[]
  deadline: Deadline
  end(): void
  fail(error: Error): void
}

export interface Observer {
  onTake?(session: ControlledSession): void
  onGiveBack?(session: ControlledSession): void
  onRun?(running: Running): void
  /** `hasEnded`: the statement succeeded. Otherwise `error` says why not. */
  onEnd?(running: Running, error?: Error): void
}

export class ControlledSession implements Session {
  readonly #sessions: ControlledSessions
  hasConsecutiveIds = true
  isInTransaction = false
  /** It is not used again. */
  isLost = false

  constructor(sessions: ControlledSessions) {
    this.#sessions = sessions
  }

  execute<Row>(statement: CompiledQuery, deadline: Deadline): Promise<QueryResult<Row>> {
    const { sql, parameters } = statement
    return this.#run(sql, [...parameters], deadline) as Promise<QueryResult<never>>
  }

  async begin(deadline: Deadline): Promise<void> {
    await this.#run('begin', [], deadline)
    this.isInTransaction = true
  }

  async commit(deadline: Deadline): Promise<void> {
    await this.#run('commit', [], deadline)
    this.isInTransaction = false
  }

  async rollback(): Promise<void> {
    this.isInTransaction = false
  }

  /** Runs until the test ends it. The rows of the result are the inputs. */
  #run(sql: string, inputs: unknown[], deadline: Deadline): Promise<QueryResult<unknown>> {
    const { running, observer } = this.#sessions
    const isUsed = running.some(({ session }) => session === this)
    if (isUsed || this.isLost) throw new Error('A session executes one statement at a time')
    return new Promise((resolve, reject) => {
      const remove = (error?: Error) => {
        if (!running.includes(one)) return
        running.splice(running.indexOf(one), 1)
        observer.onEnd?.(one, error)
        if (error) reject(error)
        else resolve({ rows: inputs })
      }
      const one: Running = {
        session: this,
        sql,
        inputs,
        deadline,
        end: remove,
        fail: remove,
      }
      running.push(one)
      observer.onRun?.(one)
      deadline.add({
        giveUp: (reason) => {
          if (running.includes(one)) this.isLost = true
          remove(reason)
        },
      })
    })
  }
}

export class ControlledSessions implements Sessions {
  readonly #demand: Demand
  readonly observer: Observer
  /** What the sessions execute, the oldest first. */
  readonly running: Running[] = []
  readonly taken = new Set<ControlledSession>()
  idle: ControlledSession[] = []
  /** The number of sessions for which calls wait. */
  wanted = 0
  /** The numbers of sessions that the queue asked for. */
  readonly prepared: number[] = []
  readonly readNow?: () => undefined
  isEnded = false

  constructor(demand: Demand, observer: Observer, isInProcess: boolean) {
    this.#demand = demand
    this.observer = observer
    if (isInProcess) this.readNow = () => undefined
  }

  take(): ControlledSession | undefined {
    const session = this.idle.pop()
    if (!session) return undefined
    this.taken.add(session)
    this.observer.onTake?.(session)
    return session
  }

  prepare(count: number): void {
    this.wanted = count
    this.prepared.push(count)
  }

  giveBack(session: Session): void {
    if (!(session instanceof ControlledSession)) throw new Error('The session is another')
    if (!this.taken.delete(session)) throw new Error('The session was not in use')
    if (!session.isLost) this.idle.push(session)
    this.observer.onGiveBack?.(session)
  }

  close(): void {
    this.isEnded = true
  }

  /** Opens this many sessions. */
  open(count: number): void {
    this.wanted = Math.max(0, this.wanted - count)
    this.idle.push(...Array.from({ length: count }, () => new ControlledSession(this)))
    this.#demand.decide()
  }
}

interface Options {
  size: number
  /** The number of sessions that are open; by default one more than may be in use. */
  open?: number
  observer?: Observer
  /** Whether the sessions are of this process, where reads must wait for a transaction. By default they are of a server. */
  isInProcess?: boolean
}

/** Returns a queue, its sessions, and their numbers. */
export function newQueue({ size, open = size + 1, observer = {}, isInProcess = false }: Options) {
  const usage: Usage = { used: 0, waiting: 0 }
  const builder = { kysely: newKysely(), engine: {} as Engine } // no plan of these tests needs one
  const statements = new Statements(builder)
  let sessions!: ControlledSessions // the queue makes them at once
  const queue = new Queue(statements, { size, usage }, (demand) => {
    sessions = new ControlledSessions(demand, observer, isInProcess)
    return sessions
  })
  const destroy = () => queue.end()
  const db = { ...builder, runner: queue, destroy, [Symbol.asyncDispose]: destroy }
  sessions.open(open)
  return { db, queue, sessions, usage }
}

const newKysely = () =>
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  })

/** Returns a plan whose statement has its inputs as parameters, and whose output is `outputOf` an input. */
export function planOf<Input, Output>(
  name: string,
  outputOf: (input: Input) => Output,
  options: { maxSize: number } & Partial<StatementPlan<Input, Output>>,
): StatementPlan<Input, Output> {
  return {
    use: 'read',
    build: (_db, values, kind) => ({
      compile: (): CompiledQuery =>
        statementOf.raw(
          kind ? `${name} ${kind}` : name,
          values.map((value) => value((input) => input)),
        ),
    }),
    split: ({ rows }, inputs) => inputs.map((_input, index) => outputOf(rows[index] as Input)),
    output: (shared) => shared as Output,
    ...options,
  }
}

export const forever = () => new Deadline(Number.POSITIVE_INFINITY)

/** Lets everything happen that does not wait for another turn of the event loop. */
export async function drain(): Promise<void> {
  for (let tick = 0; tick < 6; tick++) await new Promise<void>((done) => process.nextTick(done))
}

/** Lets this many turns of the event loop pass. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await new Promise((done) => setImmediate(done))
    await drain()
  }
}
