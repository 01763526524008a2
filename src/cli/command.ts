/** What the commands share: the configuration, its database, and how they fail. */
import { connect } from '../../db/connect.ts'
import type { Database } from '../../db/tables.ts'
import { complain, UsageError } from '../complaint.ts'
import { type Config, loadConfig } from '../config.ts'

/** Runs a command on the configured database, and closes that afterwards. */
export async function command(run: (db: Database, config: Config) => Promise<void>): Promise<void> {
  let config: Config | undefined
  try {
    config = loadConfig()
    const db = connect(config.databaseUrl)
    try {
      await run(db, config)
    } finally {
      await db.destroy()
    }
  } catch (error) {
    complain(error, config)
  }
}

/** For commands that take no arguments. Throws UsageError when there are some. */
export function refuseArguments(): void {
  const [argument] = process.argv.slice(2)
  if (argument !== undefined) throw new UsageError(`No argument is taken, but there is ${argument}`)
}
