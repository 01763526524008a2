/**
 * Makes tRPC's middlewares several times as fast, after each installation.
 *
 * @trpc/server is published with a down-levelled object spread: `_objectSpread2` copies property by
 * property through `Object.defineProperty`, five times for every middleware of every call. With
 * `Object.assign` in its place a call of a procedure with an input, an output and one middleware
 * takes 3 µs instead of 17 (Node 26). The service runs just as well without: then it is slower.
 * The helper is found by its text, since the name of its file changes with every release of tRPC. Once
 * tRPC is published without it, test/patches.unit.test.ts says that this file can go.
 *
 * It is JavaScript, because `npm ci` runs it with whatever Node the machine has.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The files of tRPC that may hold the helper. */
export const folder = path.join(
  path.dirname(fileURLToPath(import.meta.resolve('@trpc/server/package.json'))),
  'dist',
)

/** The helper as it is published: it ends where the next region of the bundle begins. */
export const published = /function _objectSpread2\(e\) \{\s+for \(var r = 1;[\s\S]*?\n\}/

/** What it is replaced by: the same for what tRPC spreads, which are plain objects without accessors. */
export const replacement = `function _objectSpread2(...parts) {
	return Object.assign(...parts);
}`

function patch() {
  for (const name of readdirSync(folder)) {
    if (!name.endsWith('.mjs')) continue
    const file = path.join(folder, name)
    const text = readFileSync(file, 'utf8')
    if (published.test(text))
      writeFileSync(
        file,
        text.replace(published, () => replacement),
      )
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) patch()
