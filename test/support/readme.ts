/** What READMEs say, for tests that do as it says. */
import { readFileSync } from 'node:fs'

/** The blocks of code of a README, or of what stands between two of its lines, each with its language. */
export function readmeBlocks(
  from = '',
  to?: string,
  file = 'README.md',
): { language: string; code: string }[] {
  const text = readFileSync(file, 'utf8')
  const start = text.indexOf(from)
  const end = to === undefined ? text.length : text.indexOf(to, start)
  if (start < 0 || end < 0) throw new Error(`${file} has no "${from}" before "${to}"`)
  const blocks = text.slice(start, end).matchAll(/^```(\w+)\n(.*?)^```$/gms)
  return [...blocks].map(([, language = '', code = '']) => ({ language, code }))
}

/** The blocks that are files, by the names in their first lines: `// exact.ts`, or `// exact.ts: what it is`. */
export function filesIn(blocks: { code: string }[]): Record<string, string> {
  return Object.fromEntries(
    blocks.flatMap(({ code }) => {
      const [, name] = /^\/\/ ([\w.-]+\.\w+)(?::|$)/m.exec(code.split('\n')[0] ?? '') ?? []
      return name === undefined ? [] : [[name, code]]
    }),
  )
}
