/** The files from which an image and its installation are made. */
import { readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.join(import.meta.dirname, '../..')

/** The text of a file of this repository. */
export const readRoot = (file: string): string => readFileSync(path.join(root, file), 'utf8')

export const dockerfile = readRoot('Dockerfile').replaceAll('\\\n', ' ')

/** The major version of Node in the image. */
export const imageNode = String(/^FROM docker\.io\/library\/node:(\d+)-slim/m.exec(dockerfile)?.[1])

export const compose = readRoot('compose.yaml')

/** The arguments of an instruction in the last stage of the Dockerfile. */
export function said(instruction: RegExp): string[] {
  const stage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  return [...stage.matchAll(new RegExp(`^${instruction.source} +(.+)$`, 'gm'))].map(
    ([, text]) => `${text}`,
  )
}
