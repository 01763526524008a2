/** `npm run restore`: puts a backup in the place of the embedded database, and brings it up to date. */
import { restore } from '../../db/backup.ts'
import { migrate } from '../../db/migrate.ts'
import { UsageError } from '../complaint.ts'
import { command, embeddedPath, fileArgument } from './command.ts'

await command(async (db, _address, config) => {
  const file = fileArgument()
  const path = embeddedPath(config)
  await restore(path, file).catch(({ message }) => {
    throw new UsageError(`Cannot restore ${file} to ${path}: ${message}`)
  })
  await migrate(db) // the backup may be of an earlier release
  console.log(`Restored ${file}: ${path}`)
})
