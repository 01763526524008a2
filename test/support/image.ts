/** The files that an image and its installation are made from, as texts. */
import { readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.join(import.meta.dirname, '../..')

/** The text of a file of this repository. */
export const readRoot = (file: string): string => readFileSync(path.join(root, file), 'utf8')

export const dockerfile = readRoot('Dockerfile').replaceAll('\\\n', ' ')
export const compose = readRoot('compose.yaml')

/** What follows an instruction of the Dockerfile, in its last stage. */
export function said(instruction: RegExp): string[] {
  const stage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  return [...stage.matchAll(new RegExp(`^${instruction.source} +(.+)$`, 'gm'))].map(
    ([, text]) => `${text}`,
  )
}
