/** MySQL, and what speaks its protocol: Kysely's dialect on a pool of mysql2. */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  MysqlIntrospector,
  MysqlQueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'
import {
  type ConnectionOptions,
  createConnection,
  type FieldPacket,
  type PoolConnection,
  type ResultSetHeader,
  type RowDataPacket,
} from 'mysql2'
import { Deadline } from '../deadline.ts'
import {
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  databaseError,
  NoConsecutiveIdsError,
  UnfitServerError,
} from '../errors.ts'
import { noteFailure, refuseAfterEnd, refuseInside } from '../inside.ts'
import type { Statement } from '../statement.ts'
import type { Target } from '../trace.ts'
import { MysqlEngine } from './mysql-engine.ts'
import { COLLATION, SET_UP, type Server, toServer, VARIABLES } from './mysql-session.ts'
import { MysqlPool, type PoolUsage, socketOf } from './pool.ts'

/** Milliseconds until a server that does not answer counts as unreachable, if nothing else is said. */
const CONNECT_TIMEOUT = 5_000

/** For how many seconds the server has been running. */
const UPTIME = `show global status like 'Uptime'`

/** MYSQL_TYPE_LONGLONG of the protocol: `bigint`, and what `count` gives. */
const LONGLONG = 8

export interface PoolSettings {
  /** Milliseconds that connecting, or a statement without a deadline of its own, may take. */
  timeout?: number | undefined
  /** Kept up to date with what the pool does. */
  usage?: PoolUsage
}

/** A dialect on a pool of connections to the server of `url` (mysql://user:password@host:port/database). */
export function mysqlDialect(url: string, settings: PoolSettings): Dialect {
  return {
    createDriver: () => new MysqlDriver(url, settings),
    createAdapter: () => new MysqlEngine(url),
    createQueryCompiler: () => new MysqlQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new MysqlIntrospector(db),
  }
}

class MysqlDriver implements Driver {
  readonly #options: ConnectionOptions
  readonly pool: MysqlPool
  readonly #idle: MysqlSession[] = []
  /** Milliseconds that a statement without a deadline of its own may take. */
  readonly timeout: number | undefined
  /** The servers of those connections that were set up. */
  readonly servers = new WeakMap<PoolConnection, Server>()
  /** What traces say of the server: https://opentelemetry.io/docs/specs/semconv/db/mysql/ */
  readonly target: Target

  constructor(url: string, { timeout, usage = { used: 0, waiting: 0 } }: PoolSettings) {
    this.timeout = timeout
    this.#options = {
      uri: url,
      charset: COLLATION,
      connectTimeout: timeout ?? CONNECT_TIMEOUT,
      supportBigNumbers: true,
    }
    this.pool = new MysqlPool(this.#options, usage)
    const { hostname, port, pathname } = new URL(url)
    this.target = {
      'db.system.name': 'mysql',
      'db.namespace': decodeURIComponent(pathname.slice(1)),
      'server.address': hostname,
      'server.port': Number(port || 3306),
    }
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<MysqlSession> {
    refuseInside()
    return this.#idle.pop() ?? new MysqlSession(this)
  }

  async releaseConnection(session: MysqlSession): Promise<void> {
    session.release()
    this.#idle.push(session)
  }

  async beginTransaction(session: MysqlSession, settings: TransactionSettings): Promise<void> {
    if (settings.isolationLevel || settings.accessMode) throw new Error('Not supported')
    session.isToBegin = true
  }

  async commitTransaction(session: MysqlSession): Promise<void> {
    await session.commit()
  }

  async rollbackTransaction(session: MysqlSession): Promise<void> {
    await session.rollback()
  }

  async destroy(): Promise<void> {
    await this.pool.end()
  }

  /**
   * Ends a connection for this reason, and what the server does for it over another that leads to the
   * same server. It never throws, and does not take longer than connecting may.
   */
  async end(connection: PoolConnection, reason: Error): Promise<void> {
    const { threadId } = connection
    const server = this.servers.get(connection)
    const age = this.pool.ageOf(connection)
    this.pool.drop(connection)
    if (reason instanceof DatabaseTimeoutError) this.pool.checkIdle()
    if (!server) return // it was being set up, and did nothing that had to be ended
    const control = createConnection(this.#options)
    const ask = async (sql: string) => (await control.promise().query<RowDataPacket[]>(sql))[0]
    control.on('error', () => {}) // those who ask are told, too
    const giveUp = () => socketOf(control).destroy(new Error('The server does not answer'))
    const timer = setTimeout(giveUp, this.#options.connectTimeout)
    try {
      for (const sql of SET_UP) await ask(sql)
      if (toServer(await ask(VARIABLES)).name !== server.name) return
      const [uptime] = await ask(UPTIME)
      // A server that was started since then may have given the number to another client.
      if (Number(uptime?.Value) * 1_000 > age) await ask(`kill ${threadId}`)
    } catch {
      // The server is beyond reach: there is nothing more to be done.
    } finally {
      clearTimeout(timer)
      socketOf(control).destroy()
    }
  }
}

/**
 * What Kysely takes for a connection. It takes one from the pool with its first statement, whose
 * deadline bounds the wait, and keeps it until it is released.
 */
class MysqlSession implements DatabaseConnection {
  readonly #driver: MysqlDriver
  #connection: PoolConnection | undefined
  /** Why there is no connection any more, though there was one. */
  #lost: Error | undefined
  /** A transaction that the server has not heard of, since it has no statement yet. */
  isToBegin = false
  /** The deadline of the latest statement, which bounds the end of the transaction too. */
  #deadline: Deadline | undefined
  /**
   * Whether the effect of every statement since the connection was taken is known. Once it is
   * not, no later failure proves that there was none.
   */
  #isCertain = true

  constructor(driver: MysqlDriver) {
    this.#driver = driver
  }

  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const { sql, parameters, deadline, needsConsecutiveIds }: Statement = query
    this.#deadline = deadline
    // What a transaction reads may be about to be locked, and what is not built may be anything.
    const isWriting = this.isToBegin || query.query.kind !== 'SelectQueryNode'
    return this.#bounded(async (deadline) => {
      refuseAfterEnd()
      const connection = await this.#connect(deadline, isWriting)
      if (needsConsecutiveIds && !this.#driver.servers.get(connection)?.hasConsecutiveIds) {
        throw new NoConsecutiveIdsError('The server does not promise consecutive ids')
      }
      if (this.isToBegin) {
        await this.#run(connection, deadline, 'begin')
        this.isToBegin = false
      }
      return await this.#run<Row>(connection, deadline, sql, parameters)
    })
  }

  /** Gives the work the deadline of the latest statement, or one of its own. */
  async #bounded<Result>(
    work: (deadline: Deadline | undefined) => Promise<Result>,
  ): Promise<Result> {
    const { timeout } = this.#driver
    if (this.#deadline || timeout === undefined) return await work(this.#deadline)
    const deadline = new Deadline(timeout)
    try {
      return await work(deadline)
    } finally {
      deadline.clear()
    }
  }

  /** The connection, taken from the pool and set up if need be. */
  async #connect(deadline: Deadline | undefined, isWriting: boolean): Promise<PoolConnection> {
    if (deadline?.reason) throw deadline.reason
    if (this.#lost) throw this.#lost
    if (this.#connection) return this.#connection
    const connection = await this.#driver.pool.take(deadline, isWriting)
    this.#connection = connection
    if (this.#driver.servers.has(connection)) return connection
    try {
      for (const sql of SET_UP) await this.#run(connection, deadline, sql)
      const server = toServer((await this.#run(connection, deadline, VARIABLES)).rows)
      if (server.mistake) throw new Error(server.mistake)
      this.#driver.servers.set(connection, server)
      return connection
    } catch (error) {
      this.#lose(error as Error) // all that #run throws
      if (error === deadline?.reason) throw error
      const cause = error instanceof DatabaseUnavailableError ? error.cause : error
      throw new DatabaseUnavailableError(cause, true) // the statement itself was not sent
    }
  }

  /**
   * Runs a statement to its end, or ends it with its connection when it is given up: the one place
   * where time and failure are handled.
   */
  async #run<Row>(
    connection: PoolConnection,
    deadline: Deadline | undefined,
    sql: string,
    parameters: readonly unknown[] = [],
  ): Promise<QueryResult<Row>> {
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult<Row>>()
    const forget = deadline?.onGiveUp((reason) => {
      this.#lose(reason)
      reject(reason)
    })
    const values = parameters as unknown[] // mysql2 leaves them as they are
    connection.query<RowDataPacket[] | ResultSetHeader>(sql, values, (error, result, fields) => {
      forget?.()
      if (error) reject(error)
      // The columns are those that the query asks for: its type is Kysely's word.
      else resolve(toResult(result, fields) as QueryResult<Row>)
    })
    const ended = deadline?.trace?.statement(sql, this.#driver.target)
    if (ended) promise.then(() => ended(), ended)
    try {
      return await promise
    } catch (thrown) {
      if (thrown === deadline?.reason) throw thrown
      const error = databaseError(thrown)
      if (!(error instanceof DatabaseUnavailableError)) throw error
      // Its connection leaves the pool: the next one may lead to a server that is fit.
      if (error instanceof UnfitServerError) this.#lose(error)
      this.#isCertain &&= error.hadNoEffect
      noteFailure(error)
      throw this.#isCertain ? error : new DatabaseUnavailableError(error.cause, false)
    }
  }

  // Nobody waits until it is ended: the server may be beyond reach.
  #lose(reason: Error): void {
    const connection = this.#connection
    this.#connection = undefined
    this.#lost = reason
    if (connection) void this.#driver.end(connection, reason)
  }

  async commit(): Promise<void> {
    if (this.#lost) throw this.#lost
    if (this.#deadline?.reason) throw this.#deadline.reason
    await this.#end('commit')
  }

  /** Never throws: a connection that cannot roll back is ended, and its transaction with it. */
  async rollback(): Promise<void> {
    try {
      await this.#end('rollback')
    } catch (error) {
      this.#lose(error as Error) // all that #run throws
    }
  }

  async #end(sql: 'commit' | 'rollback'): Promise<void> {
    const connection = this.#connection
    if (!connection || this.isToBegin) return // there was no statement
    await this.#bounded((deadline) => this.#run(connection, deadline, sql))
  }

  release(): void {
    if (this.#connection) this.#driver.pool.giveBack(this.#connection)
    this.#connection = undefined
    this.#lost = undefined
    this.#deadline = undefined
    this.isToBegin = false
    this.#isCertain = true
  }

  // biome-ignore lint/correctness/useYield: Kysely wants the method; nothing here streams.
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('Streaming is not supported')
  }
}

function toResult(
  result: RowDataPacket[] | ResultSetHeader,
  fields: FieldPacket[],
): QueryResult<unknown> {
  if (!Array.isArray(result)) {
    const { insertId, affectedRows } = result
    return {
      rows: [],
      numAffectedRows: BigInt(affectedRows),
      ...(String(insertId) !== '0' && { insertId: BigInt(insertId) }),
    }
  }
  for (const { name, columnType } of fields) {
    if (columnType !== LONGLONG) continue
    for (const row of result) if (row[name] !== null) row[name] = BigInt(row[name])
  }
  return { rows: result }
}
