/** Somebody else's frontend, in which all is installed that the READMEs say to install. */
import { symlinkSync } from 'node:fs'
import path from 'node:path'
import { inject } from 'vitest'
import { emptyProject, type Project } from '../support/client-package.ts'
import { installed } from '../support/installation.ts'
import { readmeBlocks } from '../support/readme.ts'

/** The blocks of one language in a README, or in the part of it between two headings. */
export const blocks = (file: string, language: string, from?: string, to?: string): string[] =>
  readmeBlocks(from, to, file)
    .filter((block) => block.language === language)
    .map(({ code }) => code)

/** What a README says to install, line by line, with the packed client of this run. */
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

/** A new project with all of that, which is installed once; throws what npm said if it was not. */
export async function newFrontend(): Promise<Project> {
  const { folder, file } = inject('frontend')
  await installed(file)
  const project = emptyProject()
  symlinkSync(path.join(folder, 'node_modules'), path.join(project.folder, 'node_modules'), 'dir')
  return project
}
