/** A connection as Kysely uses it: statements and transactions on a connection of the pool. */
import { type QueryResult, SelectQueryNode } from 'kysely'
import type { FieldPacket, ResultSetHeader, RowDataPacket } from 'mysql2'
import { Deadline } from '../../deadline.ts'
import { DatabaseUnavailableError, NoConsecutiveIdsError } from '../../errors.ts'
import { Connection, type Statement } from '../../transaction.ts'
import { mysqlError, NoIndexError, UnfitServerError } from './errors.ts'
import type { MysqlPool } from './pool.ts'
import type { Session } from './session.ts'

/** The types of integers in the protocol: TINY, SHORT, LONG, LONGLONG, INT24. On SQLite all are bigints, too. */
const INTEGERS = new Set<number | undefined>([1, 2, 3, 8, 9])

/** Returns the function that makes connections. A statement without a deadline has `timeout` milliseconds. */
export const connectWith = (pool: MysqlPool, timeout: number) => () =>
  new MysqlConnection(pool, timeout)

/** Takes a connection from the pool for its first statement, whose deadline limits the wait. */
class MysqlConnection extends Connection {
  readonly #pool: MysqlPool
  readonly #timeout: number
  #session: Session | undefined
  /** Whether a transaction begins with the next statement. */
  #isToBegin = false
  /** The deadline of the latest statement, which also limits the commit and the rollback. */
  #deadline: Deadline | undefined

  constructor(pool: MysqlPool, timeout: number) {
    super()
    this.#pool = pool
    this.#timeout = timeout
  }

  async execute<Row>(statement: Statement): Promise<QueryResult<Row>> {
    const { sql, parameters, query, needsConsecutiveIds } = statement
    const isRead = statement.isRead ?? SelectQueryNode.is(query)
    const deadline = statement.deadline ?? new Deadline(this.#timeout)
    this.#deadline = deadline
    // A transaction may lock the rows that it reads.
    const use = isRead && !this.#isToBegin ? 'read' : 'write'
    this.#session ??= await this.#pool.take(use, deadline)
    const session = this.#session
    if (needsConsecutiveIds && !session.server.hasConsecutiveIds) {
      throw new NoConsecutiveIdsError('The server does not guarantee consecutive ids')
    }
    if (this.#isToBegin) {
      await this.#run(session, deadline, 'begin')
      this.#isToBegin = false
    }
    try {
      return await this.#run<Row>(session, deadline, sql, parameters)
    } catch (error) {
      if (!(error instanceof NoIndexError)) throw error
      const withoutHints = sql.replaceAll(/ force index \(`[^`]*`\)/g, '')
      return await this.#run<Row>(session, deadline, withoutHints, parameters)
    }
  }

  async begin(): Promise<void> {
    this.#isToBegin = true
  }

  async commit(): Promise<void> {
    await this.#end('commit')
  }

  /** Rolls back. Never throws: a connection that fails is closed, and its transaction with it. */
  async rollback(): Promise<void> {
    await this.#end('rollback').catch(() => this.#session?.socket.destroy())
  }

  override release(): void {
    if (this.#session) this.#pool.giveBack(this.#session)
    this.#session = undefined
  }

  async #end(sql: 'commit' | 'rollback'): Promise<void> {
    // Otherwise no statement was sent.
    if (!this.#isToBegin && this.#session && this.#deadline) {
      await this.#run(this.#session, this.#deadline, sql)
    }
    this.#isToBegin = false
  }

  /** Runs a statement. If its deadline ends it, closes the connection, because the server continues. */
  #run<Row>(
    session: Session,
    deadline: Deadline,
    sql: string,
    parameters: readonly unknown[] = [],
  ): Promise<QueryResult<Row>> {
    if (deadline.reason) throw deadline.reason
    if (session.socket.destroyed) {
      throw new DatabaseUnavailableError(new Error('The connection was lost'), true)
    }
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult<Row>>()
    const removeListener = deadline.onGiveUp((reason) => {
      session.socket.destroy()
      void this.#pool.kill(session)
      reject(reason)
    })
    session.connection.query<RowDataPacket[] | ResultSetHeader>(
      sql,
      parameters as unknown[], // mysql2 does not change them
      (thrown, result, fields) => {
        removeListener()
        // Kysely declares the type of the rows.
        if (!thrown) return resolve(toResult(result, fields) as QueryResult<Row>)
        const error = mysqlError(thrown)
        // After an UnfitServerError, a new connection may lead to another server.
        if (thrown.fatal || error instanceof UnfitServerError) session.socket.destroy()
        reject(error)
      },
    )
    return promise
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
    if (!INTEGERS.has(columnType)) continue
    for (const row of result) if (row[name] !== null) row[name] = BigInt(row[name])
  }
  return { rows: result }
}
