/** A connection as Kysely uses it: statements and transactions on a connection of the pool. */
import type { QueryResult } from 'kysely'
import type { FieldPacket, ResultSetHeader, RowDataPacket } from 'mysql2'
import { Deadline } from '../../deadline.ts'
import { DatabaseUnavailableError, NoConsecutiveIdsError } from '../../errors.ts'
import type { Statement } from '../../statement.ts'
import { Connection } from '../driver.ts'
import { mysqlError, NoIndexError, UnfitServerError } from './errors.ts'
import type { MysqlPool, Pooled } from './pool.ts'

/** The types of integers in the protocol: TINY, SHORT, LONG, LONGLONG, INT24. On SQLite all are bigints, too. */
const INTEGERS = new Set<number | undefined>([1, 2, 3, 8, 9])

/** Returns the hint to read a table by an index. */
export const hintOf = (index: string): string => ` force index (\`${index}\`)`

/** Takes a connection from the pool for its first statement, whose deadline limits the wait. */
export class MysqlConnection extends Connection {
  readonly #pool: MysqlPool
  /** Milliseconds for a statement without a deadline. */
  readonly #timeout: number
  #pooled: Pooled | undefined
  /** Why the connection was closed. */
  #lost: Error | undefined
  /** Whether a transaction begins with the next statement. */
  #isToBegin = false
  /** The deadline of the latest statement, which also limits the commit and the rollback. */
  #deadline: Deadline | undefined
  /** The same for a statement without one. */
  #ownDeadline: Deadline | undefined

  constructor(pool: MysqlPool, timeout: number) {
    super()
    this.#pool = pool
    this.#timeout = timeout
  }

  async execute<Row>(statement: Statement): Promise<QueryResult<Row>> {
    const { sql, parameters, isRead, needsConsecutiveIds } = statement
    this.#ownDeadline?.clear()
    this.#ownDeadline = statement.deadline ? undefined : new Deadline(this.#timeout)
    this.#deadline = statement.deadline ?? this.#ownDeadline
    const deadline = this.#deadline as Deadline // one of both
    if (deadline.reason) throw deadline.reason
    if (this.#lost) throw this.#lost
    // A transaction may lock the rows that it reads.
    const use = isRead && !this.#isToBegin ? 'read' : 'write'
    this.#pooled ??= await this.#pool.take(use, deadline)
    const pooled = this.#pooled
    if (needsConsecutiveIds && !pooled.server.hasConsecutiveIds) {
      throw new NoConsecutiveIdsError('The server does not guarantee consecutive ids')
    }
    if (this.#isToBegin) {
      await this.#run(pooled, deadline, 'begin')
      this.#isToBegin = false
    }
    try {
      return await this.#run<Row>(pooled, deadline, sql, parameters)
    } catch (error) {
      if (!(error instanceof NoIndexError)) throw error
      const withoutHints = sql.replaceAll(/ force index \(`[^`]*`\)/g, '')
      return await this.#run<Row>(pooled, deadline, withoutHints, parameters)
    }
  }

  async begin(): Promise<void> {
    this.#isToBegin = true
  }

  async commit(): Promise<void> {
    if (this.#lost) throw this.#lost
    if (this.#deadline?.reason) throw this.#deadline.reason
    await this.#end('commit')
  }

  /** Rolls back. Never throws: a connection that fails is closed, and its transaction with it. */
  async rollback(): Promise<void> {
    await this.#end('rollback').catch((error) => this.#lose(error))
  }

  async release(): Promise<void> {
    this.#ownDeadline?.clear()
    if (this.#pooled) this.#pool.giveBack(this.#pooled)
    this.#pooled = undefined
  }

  async #end(sql: 'commit' | 'rollback'): Promise<void> {
    const isBegun = !this.#isToBegin
    this.#isToBegin = false
    // Otherwise no statement was sent.
    if (isBegun && this.#pooled && this.#deadline) {
      await this.#run(this.#pooled, this.#deadline, sql)
    }
  }

  /** Runs a statement. If its deadline ends it, closes the connection, because the server continues. */
  async #run<Row>(
    pooled: Pooled,
    deadline: Deadline,
    sql: string,
    parameters: readonly unknown[] = [],
  ): Promise<QueryResult<Row>> {
    if (pooled.hasEnded)
      throw new DatabaseUnavailableError(new Error('The connection was lost'), true)
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult<Row>>()
    const removeListener = deadline.onGiveUp((reason) => {
      this.#lose(reason)
      void this.#pool.kill(pooled)
      reject(reason)
    })
    const values = parameters as unknown[] // mysql2 does not change them
    pooled.connection.query<RowDataPacket[] | ResultSetHeader>(
      sql,
      values,
      (error, result, fields) => {
        removeListener()
        if (error?.fatal) pooled.hasEnded = true
        if (error) reject(error)
        // Kysely declares the type of the rows.
        else resolve(toResult(result, fields) as QueryResult<Row>)
      },
    )
    try {
      return await promise
    } catch (thrown) {
      if (thrown === deadline.reason) throw thrown
      const error = mysqlError(thrown as Error) // mysql2 throws nothing else
      // A new connection may lead to another server.
      if (error instanceof UnfitServerError) this.#lose(error)
      throw error
    }
  }

  /** Closes the connection for this reason. */
  #lose(reason: Error): void {
    const pooled = this.#pooled
    this.#pooled = undefined
    this.#lost = reason
    if (pooled) this.#pool.drop(pooled)
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
