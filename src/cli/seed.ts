/** `npm run seed`: adds sample data to the catalogue. */
import { seed } from '../petstore/pets/seed.ts'
import { command, print, refuseArguments, withMigratedDatabase } from '../process/programs.ts'

await command(async (config, location) => {
  refuseArguments()
  const added = await withMigratedDatabase(config, seed)
  const done = added > 0 ? `Added ${added} animals` : 'All animals exist already'
  await print(`${done}: ${location}`)
})
