/** Where the service is: the only file here that follows when its own files move. */
import { transformer } from '../client/src/client.ts'
import manifest from '../package.json' with { type: 'json' }

/** The process that serves. */
export const SERVICE_PROGRAM = 'src/main.ts'

/** What `npm start` tells Node. */
export const SERVICE_FLAGS = manifest.scripts.start
  .split(' ')
  .filter((word) => word.startsWith('--'))

/** Makes API keys, and brings the schema up to date before. */
export const KEYS_PROGRAM = 'src/cli/keys.ts'

/** How a server writes inputs and outputs of tRPC. */
export interface Codec {
  encode(input: unknown): unknown
  decode(output: never): unknown
}

export const serviceCodec: Codec = {
  encode: transformer.serialize,
  decode: (output) => JSON.parse(JSON.stringify(transformer.deserialize(output), asNumber)),
}

// The ids of the benchmark are small, and those of its peers are numbers.
const asNumber = (_name: string, value: unknown) =>
  typeof value === 'bigint' ? Number(value) : value
