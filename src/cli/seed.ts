/** `npm run seed`: adds sample data to the catalogue. */
import { seed } from '../petstore/pets/seed.ts'
import { print } from '../process/program.ts'
import { command, databaseLocation, refuseArguments, withDatabase } from './command.ts'

await command(async (config) => {
  refuseArguments()
  const added = await withDatabase(config, seed)
  const done = added > 0 ? `Added ${added} animals` : 'All animals exist already'
  await print(`${done}: ${databaseLocation(config)}`)
})
