/** The files of the service: the only file here that depends on their paths. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { transformer } from '../client/src/client.ts'

/** A folder with this repository at some commit, and its own node_modules. */
export interface Checkout {
  root: string
  /** The path of the Node that its `npm start` runs, and its version. */
  node: string
  nodeVersion: string
}

/** The checkout that this program belongs to. */
export const THIS_CHECKOUT: Checkout = {
  root: path.join(import.meta.dirname, '..'),
  node: process.execPath,
  nodeVersion: process.versions.node,
}

/** The program of the server. */
export const SERVICE_PROGRAM = 'src/main.ts'

/** The program that migrates the schema and creates API keys. */
export const KEYS_PROGRAM = 'src/cli/keys.ts'

/** Reads the options of Node and the variables with which a checkout starts: in bin/petstore, before that in `npm start`. */
function readStart(root: string) {
  const program = path.join(root, 'bin/petstore')
  const file = existsSync(program) ? program : path.join(root, 'package.json')
  const text = readFileSync(file, 'utf8')
  const script = file === program ? text.replaceAll(/^#.*/gm, '') : JSON.parse(text).scripts.start
  const words: string[] = script.split(/\s+/)
  return {
    flags: words.filter((word) => word.startsWith('--')),
    // All servers of one checkout share the folder of the compile cache.
    variables: Object.fromEntries(
      words.flatMap((word) => {
        const [, name = '', value = ''] = /^([A-Z_]+)=(.*)/.exec(word) ?? []
        return name && name !== 'NODE_COMPILE_CACHE' ? [[name, value]] : []
      }),
    ),
  }
}

const start = readStart(THIS_CHECKOUT.root)

/** The options of Node in `bin/petstore`. */
export const SERVICE_FLAGS = start.flags

/** Those that NODE_OPTIONS may have. */
export const ALLOWED_FLAGS = SERVICE_FLAGS.filter((flag) =>
  process.allowedNodeEnvironmentFlags.has(flag.replace(/=.*/, '')),
)

/** The variables of `bin/petstore`, except the folder of the compile cache. */
export const SERVICE_VARIABLES = start.variables

/** The encoding of a server for inputs and outputs of tRPC. */
export interface Codec {
  encode(input: unknown): unknown
  decode(output: never): unknown
}

const codecOf = ({ serialize, deserialize }: typeof transformer): Codec => ({
  encode: serialize,
  decode: (output) => JSON.parse(JSON.stringify(deserialize(output), asNumber)),
})

// The ids of the benchmark are small; the peers use numbers.
const asNumber = (_name: string, value: unknown) =>
  typeof value === 'bigint' ? Number(value) : value

export const serviceCodec = codecOf(transformer)

/** Reads how another checkout starts its service. Throws if it has none, or no Node. */
export async function readCheckout(root: string) {
  const print = 'process.execPath + " " + process.versions.node'
  const node = execFileSync(path.join(root, 'bin/node'), ['-p', print], { encoding: 'utf8' })
  const [, execPath = '', nodeVersion = ''] = /^(.*) (\S+)$/m.exec(node) ?? []
  const client: { transformer: typeof transformer } = await import(
    pathToFileURL(path.join(root, 'client/src/client.ts')).href
  )
  const checkout: Checkout = { root, node: execPath, nodeVersion }
  return { checkout, ...readStart(root), codec: codecOf(client.transformer) }
}
