/** Blocks of code in the documents (Markdown), for tests that run them. */
import { readFileSync } from 'node:fs'

interface Block {
  language: string
  code: string
}

/**
 * Returns the blocks of code of a document, or of the part from one text to the next occurrence of
 * another. Throws if the document lacks one of the texts.
 */
export function blocksOf(file: string, from = '', to?: string): Block[] {
  const text = readFileSync(file, 'utf8')
  const start = text.indexOf(from)
  const end = to === undefined ? text.length : text.indexOf(to, start)
  if (start < 0 || end < 0) throw new Error(`${file} has no "${from}" before "${to}"`)
  const blocks = text.slice(start, end).matchAll(/^```(\w+)\n(.*?)^```$/gms)
  return [...blocks].map(([, language = '', code = '']) => ({ language, code }))
}

/** Returns the blocks that are files, by the names in their first lines: `// exact.ts: what it is`. */
export function filesIn(blocks: Block[]): Record<string, string> {
  return Object.fromEntries(
    blocks.flatMap(({ code }) => {
      const [, name] = /^\/\/ ([\w.-]+\.\w+)(?::|$)/m.exec(code.split('\n')[0] ?? '') ?? []
      return name === undefined ? [] : [[name, code]]
    }),
  )
}

/** Returns the packages of npm that the lines `npm install …` of these blocks name, without files. */
export const packagesIn = (blocks: Block[]): string[] =>
  blocks
    .filter(({ language }) => language === 'sh')
    .flatMap(({ code }) => code.split(/\n|&&/))
    .flatMap((command) => /^ *npm install (.*)/.exec(command)?.[1]?.split(' ') ?? [])
    .filter((word) => /^[@\w]/.test(word) && !word.endsWith('.tgz'))
