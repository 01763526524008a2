/** `npm run backup`: copies the embedded database into a file, while the service runs. */
import { UsageError } from '../config/environment.ts'
import { command, embeddedPath, fileArgument, print } from '../process/programs.ts'

await command(async (config) => {
  const file = fileArgument(config)
  const path = embeddedPath(config)
  const { backUp } = await import('../../db/backup.ts')
  await backUp(path, file).catch(({ message, cause = { message } }) => {
    throw new UsageError(`Cannot back up ${path} to ${file}: ${cause.message}`)
  })
  await print(`Backed up to ${file}: ${path}`)
})
