/** `npm run restore`: puts a backup in the place of the embedded database, and brings it up to date. */
import { UsageError } from '../process/complain.ts'
import { command, embeddedPath, fileArgument, withDatabase } from './command.ts'

await command(async (config) => {
  const file = fileArgument()
  const path = embeddedPath(config)
  const { restore } = await import('../../db/backup.ts')
  await restore(path, file).catch(({ message }) => {
    throw new UsageError(`Cannot restore ${file} to ${path}: ${message}`)
  })
  await withDatabase(config, () => {}) // the backup may be of an earlier release
  console.log(`Restored ${file}: ${path}`)
})
