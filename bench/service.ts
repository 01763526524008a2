/** The files of the service: the only file here that depends on their paths. */
import { transformer } from '../client/src/client.ts'
import manifest from '../package.json' with { type: 'json' }

/** The program of the server. */
export const SERVICE_PROGRAM = 'src/main.ts'

const start = manifest.scripts.start.split(' ')

/** The options of Node in `npm start`. */
export const SERVICE_FLAGS = start.filter((word) => word.startsWith('--'))

/** Those that NODE_OPTIONS may have. */
export const ALLOWED_FLAGS = SERVICE_FLAGS.filter((flag) =>
  process.allowedNodeEnvironmentFlags.has(flag.replace(/=.*/, '')),
)

/** The variables of `npm start`, except the folder of the compile cache, which all servers share. */
export const SERVICE_VARIABLES = Object.fromEntries(
  start.flatMap((word) => {
    const [name = '', value = ''] = word.split('=')
    return /^[A-Z]/.test(name) && name !== 'NODE_COMPILE_CACHE' ? [[name, value]] : []
  }),
)

/** The program that migrates the schema and creates API keys. */
export const KEYS_PROGRAM = 'src/cli/keys.ts'

/** The encoding of a server for inputs and outputs of tRPC. */
export interface Codec {
  encode(input: unknown): unknown
  decode(output: never): unknown
}

export const serviceCodec: Codec = {
  encode: transformer.serialize,
  decode: (output) => JSON.parse(JSON.stringify(transformer.deserialize(output), asNumber)),
}

// The ids of the benchmark are small; the peers use numbers.
const asNumber = (_name: string, value: unknown) =>
  typeof value === 'bigint' ? Number(value) : value
