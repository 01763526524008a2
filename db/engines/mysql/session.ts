/** A session with a MySQL server: how it is opened, and its statements and transactions. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { CompiledQuery, type QueryResult } from 'kysely'
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  type FieldPacket,
  type QueryError,
  type ResultSetHeader,
  type RowDataPacket,
} from 'mysql2'
import type { Deadline, Waiter } from '../../deadline.ts'
import { DatabaseUnavailableError } from '../../errors.ts'
import type { Session } from '../../session.ts'
import type { Tls } from '../../url.ts'
import { mysqlError, NoIndexError, openError, UnfitServerError } from './errors.ts'
import { type KnownServers, type Server, setUp } from './set-up.ts'
import { readTls } from './tls.ts'

/**
 * Milliseconds that the log-in may take after TCP has accepted the connection. That is longer than a call
 * waits: a server that hangs counts each connection that its client closes before the log-in ends, and after
 * a hundred it blocks the client's address for good (error 1129):
 * https://dev.mysql.com/doc/refman/9.4/en/server-system-variables.html#sysvar_max_connect_errors
 */
const LOG_IN_TIMEOUT = 60_000

/**
 * Milliseconds of silence after which TCP probes the server; after ten seconds more without a reply the
 * connection is lost: https://nodejs.org/api/net.html#socketsetkeepaliveenable-initialdelay
 */
const KEEP_ALIVE_DELAY = 10_000

const LOST = 'The connection was lost'

const BEGIN = CompiledQuery.raw('begin')
const COMMIT = CompiledQuery.raw('commit')
const ROLLBACK = CompiledQuery.raw('rollback')

/** The reply to a statement: rows, or what a statement has changed. */
type Reply = RowDataPacket[] | ResultSetHeader

/** A server, and how a connection to it is opened. */
export interface Address {
  /** Where it listens: a host and a port, or a socket of this machine. */
  at: { host: string; port: number } | { path: string }
  options: ConnectionOptions
  /** Undefined for clear text. */
  tls: Tls | undefined
  /** Milliseconds for TCP, and for the session. */
  timeout: number
  /** What its sessions have found out about servers. */
  known: KnownServers
  /** Is called with what an operator should know. */
  warn(message: string): void
}

/** What the sessions of a pool do for one of them. */
interface Keeper {
  /** Ends what a closed session still does on its server. Never throws. */
  kill(session: MysqlSession): Promise<void>
  /** A server said that it may not write. */
  onUnfit(): void
}

/** Opens a session: the socket, the log-in, the settings. `onLogIn` is called once the server has answered. Throws the reason, for the operator. */
export async function open(
  { at, options, tls, timeout, known, warn }: Address,
  keeper: Keeper,
  signal: AbortSignal,
  onLogIn: () => void,
): Promise<MysqlSession> {
  const encrypted = tls && { ssl: readTls(tls) }
  const openedAt = performance.now()
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY, noDelay: true }
  const socket = connect({ ...at, ...keepAlive }).on('error', () => {}) // each step throws it
  const close = () => socket.destroy(new Error('The server does not answer'))
  signal.addEventListener('abort', close)
  const within = async <Result>(milliseconds: number, step: Promise<Result>): Promise<Result> => {
    const timer = setTimeout(close, milliseconds)
    return await step.finally(() => clearTimeout(timer))
  }
  try {
    await within(timeout, once(socket, 'connect'))
    const given = { ...options, ...encrypted, stream: socket, connectTimeout: 0 }
    const connection = createConnection(given)
    connection.on('error', () => {}) // as above
    await within(LOG_IN_TIMEOUT, promisify(connection.connect).call(connection))
    onLogIn()
    const { server, mayBatch } = await within(timeout, setUp(connection, known, warn))
    // It may have waited for what another session found out.
    if (socket.destroyed) throw new Error(LOST)
    return new MysqlSession(keeper, { connection, socket, server, mayBatch, openedAt })
  } catch (error) {
    socket.destroy()
    throw openError(error as Error, tls) // Node and mysql2 throw nothing else
  } finally {
    signal.removeEventListener('abort', close)
  }
}

/** A session. All times are those of performance.now(). */
export class MysqlSession implements Session, Waiter {
  readonly connection: Connection
  /**
   * `destroy()` ends the session at once, without a message to the server, which may be unreachable. Once it
   * is `destroyed`, no statement can be sent.
   */
  readonly socket: Socket
  readonly server: Server
  /** Whether the ids of one insert are consecutive, if no trigger assigns them. */
  readonly mayBatch: boolean
  /** When its opening began. */
  readonly openedAt: number
  /** When it was last known to work. */
  workedAt = performance.now()
  /** When another one is to replace it. */
  endsAt = Number.POSITIVE_INFINITY
  /** Whether another one has replaced it, so that it is closed after its use. */
  isRetired = false
  readonly #keeper: Keeper
  isInTransaction = false
  /** Rejects the latest statement. */
  #reject: (reason: Error) => void = () => {}

  constructor(
    keeper: Keeper,
    opened: Pick<MysqlSession, 'connection' | 'socket' | 'server' | 'mayBatch' | 'openedAt'>,
  ) {
    this.#keeper = keeper
    this.connection = opened.connection
    this.socket = opened.socket
    this.server = opened.server
    this.mayBatch = opened.mayBatch
    this.openedAt = opened.openedAt
  }

  get hasConsecutiveIds(): boolean {
    return this.mayBatch && this.server.hasNoTriggers
  }

  /** Closes the session if the deadline ends the statement, because the server continues. */
  async execute<Row>(statement: CompiledQuery, deadline: Deadline): Promise<QueryResult<Row>> {
    if (deadline.reason) throw deadline.reason
    if (this.socket.destroyed) throw new DatabaseUnavailableError(new Error(LOST), true)
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult<Row>>()
    this.#reject = reject
    deadline.add(this)
    const values = statement.parameters as unknown[] // mysql2 does not change them
    this.connection.query<Reply>(statement.sql, values, (error, reply, fields) => {
      deadline.remove(this)
      this.workedAt = performance.now()
      if (error) void this.#afterError<Row>(error, statement, deadline).then(resolve, reject)
      else resolve(Array.isArray(reply) ? toRows(reply, fields) : toEffect(reply))
    })
    return await promise
  }

  async begin(deadline: Deadline): Promise<void> {
    await this.execute(BEGIN, deadline)
    this.isInTransaction = true
  }

  async commit(deadline: Deadline): Promise<void> {
    await this.execute(COMMIT, deadline)
    this.isInTransaction = false
  }

  /** Never throws: a session that fails is closed, and its transaction with it. */
  async rollback(deadline: Deadline): Promise<void> {
    this.isInTransaction = false
    await this.execute(ROLLBACK, deadline).catch(() => this.socket.destroy())
  }

  /** Ends the statement that the server executes. */
  giveUp(reason: Error): void {
    this.socket.destroy()
    void this.#keeper.kill(this)
    this.#reject(reason)
  }

  /** Returns the result of a statement without its hints, if a table lacks the index. Throws all other errors. */
  async #afterError<Row>(
    thrown: QueryError,
    statement: CompiledQuery,
    deadline: Deadline,
  ): Promise<QueryResult<Row>> {
    const error = mysqlError(thrown)
    if (error instanceof UnfitServerError) this.#keeper.onUnfit()
    // After an UnfitServerError, a new connection may lead to another server.
    if (thrown.fatal || error instanceof UnfitServerError) this.socket.destroy()
    const sql = statement.sql.replaceAll(/ force index \(`[^`]*`\)/g, '')
    if (!(error instanceof NoIndexError) || sql === statement.sql) throw error
    // An operator has dropped the index, or the table is a view: slower, but right.
    return await this.execute({ ...statement, sql }, deadline)
  }
}

/** The types of integers in the protocol: TINY, SHORT, LONG, LONGLONG, INT24. On SQLite all are bigints, too. */
const INTEGERS = new Set<number | undefined>([1, 2, 3, 8, 9])

function toRows<Row>(rows: RowDataPacket[], fields: FieldPacket[]): QueryResult<Row> {
  for (const { name, columnType } of fields) {
    if (!INTEGERS.has(columnType)) continue
    for (const row of rows) if (row[name] !== null) row[name] = BigInt(row[name])
  }
  return { rows: rows as Row[] } // Kysely declares their type
}

const toEffect = ({ insertId, affectedRows }: ResultSetHeader): QueryResult<never> => ({
  rows: [],
  numAffectedRows: BigInt(affectedRows),
  ...(String(insertId) !== '0' && { insertId: BigInt(insertId) }),
})
