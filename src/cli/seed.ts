/** `npm run seed`: fills the catalogue with examples. */
import { seed } from '../petstore/pets/seed.ts'
import { addressOf, command, refuseArguments, withDatabase } from './command.ts'

await command(async (config) => {
  refuseArguments()
  const added = await withDatabase(config, seed)
  const done = added > 0 ? `Added ${added} animals` : 'The animals are all there already'
  console.log(`${done}: ${addressOf(config)}`)
})
