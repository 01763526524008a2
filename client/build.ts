/** The part of `npm run build` that follows the compiler: it completes the client package. */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { appRouter } from '../src/petstore/resources.ts'
import { bundled, bundleStandIn } from './bundle.ts'
import { documented, documentedClient } from './documentation.ts'

const dist = path.join(import.meta.dirname, 'dist')
const built = path.join(dist, 'client/src')

function rewrite(name: string, change: (text: string) => string): void {
  const file = path.join(dist, name)
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}

rewrite('client/src/interface.d.ts', (text) => documented(text, appRouter))
rewrite('client/src/client.d.ts', (text) => documentedClient(text, appRouter))
// The package has no .ts files. The compiler leaves their names in declarations, where some editors and Bun
// do not find them: https://github.com/microsoft/TypeScript/issues/61037
const declarations = ['client', 'interface', 'testing'].map((name) => `client/src/${name}`)
for (const name of [...declarations, 'src/wire/encoding']) {
  rewrite(`${name}.d.ts`, (text) => text.replaceAll(/(from '\.\.?\/[^']+)\.ts'/g, "$1.js'"))
}

/** The licenses of the libraries in the bundle, which require a copy in it. */
const licenses = bundled.map((name) => {
  const license = fileURLToPath(import.meta.resolve(`../node_modules/${name}/LICENSE`))
  return `/*! Parts of ${name}:\n\n${readFileSync(license, 'utf8').trim()}\n*/`
})

// A test of the stand-in checks that it runs in browsers, too.
await bundleStandIn(path.join(import.meta.dirname, 'src/testing.ts'), {
  output: { file: path.join(built, 'testing.js'), banner: licenses.join('\n') },
})
