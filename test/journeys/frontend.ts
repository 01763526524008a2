/** A frontend outside this repository, with all packages that the documents install. */
import { existsSync } from 'node:fs'
import { inject } from 'vitest'
import { emptyProject, type Project } from '../support/client-package.ts'
import { blocksOf, packagesIn } from '../support/documents.ts'

/** Returns the blocks of one language in a document, or in the part between two headings. */
export const blocks = (file: string, language: string, from?: string, to?: string): string[] =>
  blocksOf(file, from, to)
    .filter((block) => block.language === language)
    .map(({ code }) => code)

/** Returns the packages of npm that a document installs. */
export const installs = (file: string, from?: string, to?: string): string[] =>
  packagesIn(blocksOf(file, from, to))

/** Whether this repository has a package, in the version of its lock file. */
export const isHere = (name: string): boolean => existsSync(`node_modules/${name}`)

/** Returns a new project with the client and the packages of its README that are here. */
export function newFrontend(): Project {
  const project = emptyProject()
  project.link(inject('clientPackage'), installs('client/README.md').filter(isHere))
  return project
}
