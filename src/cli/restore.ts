/** `npm run restore`: replaces the embedded database by a backup, and migrates it. */
import { UsageError } from '../config/environment.ts'
import { command, embeddedPath, fileArgument, print, withDatabase } from '../process/program.ts'

await command(async (config) => {
  const file = fileArgument()
  const path = embeddedPath(config)
  const { restore } = await import('../../db/backup.ts')
  await restore(path, file).catch(({ message }) => {
    throw new UsageError(`Cannot restore ${file} to ${path}: ${message}`)
  })
  await withDatabase(config, () => {}) // the backup may be from an earlier release
  await print(`Restored ${file}: ${path}`)
})
