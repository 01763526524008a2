/** What `npm run build` does with the client package when the compiler has done its part. */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { appRouter } from '../src/router.ts'
import { documented, documentedClient } from './documentation.ts'

const built = path.join(import.meta.dirname, 'dist/client/src')
const { procedures } = appRouter._def

function rewrite(name: string, change: (text: string) => string): void {
  const file = path.join(built, name)
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}

rewrite('interface.d.ts', (text) => documented(text, procedures))
rewrite('client.d.ts', (text) => documentedClient(text, procedures))
