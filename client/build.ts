/** What `npm run build` does with the client package when the compiler has done its part. */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'rolldown'
import { appRouter } from '../src/petstore/router.ts'
import { documented, documentedClient } from './documentation.ts'

const built = path.join(import.meta.dirname, 'dist/client/src')

function rewrite(name: string, change: (text: string) => string): void {
  const file = path.join(built, name)
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}

rewrite('interface.d.ts', (text) => documented(text, appRouter))
rewrite('client.d.ts', (text) => documentedClient(text, appRouter))

/** What the stand-in takes along of others, who ask that their licenses go with it. */
const taken = ['zod', 'trpc-to-openapi']
const licenses = taken.map((name) => {
  const license = fileURLToPath(import.meta.resolve(`../node_modules/${name}/LICENSE`))
  return `/*! Parts of ${name}:\n\n${readFileSync(license, 'utf8').trim()}\n*/`
})

// The stand-in takes the router along, so that it cannot differ from it, and nothing else of the
// service: it runs in browsers too. What the router imports and does not need here is left out, which
// the test of the stand-in makes sure of.
await build({
  input: path.join(import.meta.dirname, 'src/testing.ts'),
  external: (name) => !['.', '/', ...taken].some((start) => name.startsWith(start)),
  platform: 'neutral',
  resolve: { mainFields: ['module'] },
  treeshake: { moduleSideEffects: false },
  output: { file: path.join(built, 'testing.js'), banner: licenses.join('\n') },
})
