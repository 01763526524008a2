/** `npm run seed`: adds sample data to the catalogue. */
import { seed } from '../petstore/pets/seed.ts'
import { print, withDatabase } from '../process/program.ts'
import { command, refuseArguments } from './command.ts'

await command(async (config, location) => {
  refuseArguments()
  const added = await withDatabase(config, seed)
  const done = added > 0 ? `Added ${added} animals` : 'All animals exist already'
  await print(`${done}: ${location}`)
})
