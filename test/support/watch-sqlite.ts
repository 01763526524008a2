/**
 * Preloaded into a process of the service. Writes each statement on the embedded database to stderr,
 * with the settings of its connection, which are not visible from outside the process.
 */
import { writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

const { prepare } = DatabaseSync.prototype

DatabaseSync.prototype.prepare = function (text, ...more) {
  const settings = ['journal_mode', 'synchronous', 'busy_timeout'].map((name) =>
    Object.values(prepare.call(this, `pragma ${name}`).get() ?? {}).join(),
  )
  writeSync(2, `sqlite [${settings}] ${text}\n`)
  return prepare.call(this, text, ...more)
}
