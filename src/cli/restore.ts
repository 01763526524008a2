/** `npm run restore`: replaces the embedded database by a backup, and migrates it. */
import { UsageError } from '../config/environment.ts'
import { command, embeddedPath, fileArgument, print } from '../process/programs.ts'

await command(async (config) => {
  const file = fileArgument(config)
  const path = embeddedPath(config)
  const { restore } = await import('../../db/backup.ts')
  await restore(path, file).catch(({ message, cause = { message } }) => {
    throw new UsageError(`Cannot restore ${file} to ${path}: ${cause.message}`)
  })
  await print(`Restored ${file}: ${path}`)
})
