/** `--distant`: the database is some milliseconds away from the servers, and many callers share it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../test/support/mysql.ts'
import { openSql } from '../test/support/sql.ts'
import { type Case, restCases } from './cases.ts'

/** The milliseconds from a server to its database, each way. */
export const DISTANCES = [1, 15]

const CONNECTIONS = [32, 200]
const CASES = ['page', 'getPet', 'createPet']

/** Pages, look-ups and creations, each for few and for many callers. */
export function distantCases(): Case[] {
  return restCases()
    .filter(({ id }) => CASES.includes(id))
    .flatMap((test) =>
      CONNECTIONS.map((connections) => ({
        ...test,
        id: `${test.id}.${connections}`,
        title: `${test.title}, ${connections} connections`,
        connections,
      })),
    )
}

/** The delays that a relay has made, in milliseconds, and its microseconds of processor time for each. */
interface Delays {
  mean: number
  p99: number
  max: number
  processor: number
}

/** A relay in a process of its own. */
export interface Relay {
  /** Returns the URL that leads to the same database through the relay. */
  through(url: string): string
  stop(): Promise<Delays>
}

/** Starts a relay to the server of a DATABASE_URL; `delay` is in milliseconds, each way. */
export async function startRelay(databaseUrl: string, delay: number): Promise<Relay> {
  const { port: target } = new URL(databaseUrl)
  const port = await freePort()
  const program = path.join(import.meta.dirname, 'relay.ts')
  const child = spawn(process.execPath, [program, String(port), target, String(delay)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = once(child, 'exit').then(() => process.off('exit', kill))
  const printed = text(child.stdout)
  const through = (url: string) => {
    const relayed = new URL(url)
    relayed.host = `127.0.0.1:${port}`
    return relayed.href
  }
  for (let attempt = 0; ; attempt++, await setTimeout(100)) {
    const sql = await openSql(through(databaseUrl)).catch((error) => {
      if (child.exitCode !== null || attempt > 300) throw error
    })
    await sql?.close()
    if (sql) break
  }
  return {
    through,
    async stop() {
      child.kill('SIGTERM')
      await exited
      return JSON.parse(await printed)
    },
  }
}
