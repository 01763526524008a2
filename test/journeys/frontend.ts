/** A frontend outside this repository, with all packages that the documents install. */
import { symlinkSync } from 'node:fs'
import path from 'node:path'
import { inject } from 'vitest'
import { emptyProject, type Project } from '../support/client-package.ts'
import { blocksOf } from '../support/documents.ts'
import { installed } from '../support/installation.ts'

/** Returns the blocks of one language in a document, or in the part between two headings. */
export const blocks = (file: string, language: string, from?: string, to?: string): string[] =>
  blocksOf(file, from, to)
    .filter((block) => block.language === language)
    .map(({ code }) => code)

/** Returns the arguments of each `npm install` in a document, with the packed client of this run. */
export function installs(tarball: string, file: string, from?: string, to?: string): string[][] {
  return blocks(file, 'sh', from, to)
    .flatMap((block) => block.split('\n'))
    .filter((line) => line.startsWith('npm install '))
    .map((line) =>
      line
        .replace(/\S+\/(petstore-catalogue-petstore-[\d.]+\.tgz)/, `${path.dirname(tarball)}/$1`)
        .split(' ')
        .slice(2),
    )
}

/** Returns a new project with these packages, which are installed once. Throws the error of npm. */
export async function newFrontend(): Promise<Project> {
  const { folder, file } = inject('frontend')
  await installed(file)
  const project = emptyProject()
  symlinkSync(path.join(folder, 'node_modules'), path.join(project.folder, 'node_modules'), 'dir')
  return project
}
