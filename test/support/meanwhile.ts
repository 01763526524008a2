/** Two transactions at once, one of which a test holds open. */
import { setTimeout } from 'node:timers/promises'
import { engine } from './database.ts'
import type { Sql } from './sql.ts'

/** Executes statements in a transaction, makes a call that meets their locks, commits, and returns its result. */
export async function meanwhile<Result>(
  sql: Sql,
  statements: string[],
  call: () => Promise<Result>,
): Promise<Result> {
  await sql(engine === 'sqlite' ? 'begin immediate' : 'begin')
  for (const statement of statements) await sql(statement)
  const result = call()
  await Promise.race([result, setTimeout(300)])
  await sql('commit')
  return await result
}
