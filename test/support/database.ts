/** New databases and folders for tests, on the engine of the project that runs. */
import { randomBytes } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, inject, onTestFinished, test } from 'vitest'
import { type MysqlServer, startMysql } from './mysql.ts'

export const engine = inject('mysqlUrl') ? 'mysql' : 'sqlite'

/** A test, in a file that runs on both engines, whose result depends on neither. */
export const testOnce = test.runIf(engine === 'sqlite')

/** An empty database. */
export interface TestDatabase {
  url: string
  remove(): Promise<void>
}

export async function newDatabase(server = inject('mysqlUrl')): Promise<TestDatabase> {
  if (!server) {
    const folder = mkdtempSync(path.join(tmpdir(), 'petstore-sqlite-'))
    const file = path.join(folder, 'petstore.db')
    closeSync(openSync(file, 'a', 0o600)) // for SQLite, an empty file is an empty database
    return {
      url: `sqlite:${file}`,
      remove: async () => rmSync(folder, { recursive: true, force: true }),
    }
  }
  const name = `petstore_${randomBytes(6).toString('hex')}`
  const run = async (sql: string) => {
    const connection = await createConnection(server)
    await connection.query(sql)
    await connection.end()
  }
  await run(`create database ${name}`)
  const url = new URL(server)
  url.pathname = name
  return { url: url.href, remove: () => run(`drop database ${name}`) }
}

/** A database as programs name it: a file, or a host with the name of the database. */
export function placeOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl)
  return engine === 'sqlite' ? databaseUrl.slice('sqlite:'.length) : host + pathname
}

/** Makes an empty folder, which is removed after the test, or by the hook that is given. */
export function newFolder(hook: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-run-'))
  hook(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Starts a MySQL server with these flags for all tests of a file, and removes it after them. */
export async function mysqlForFile(flags: string[] = []): Promise<MysqlServer> {
  const server = await startMysql(flags)
  afterAll(server.remove)
  return server
}
