/** The published document, openapi.json, which `npm run openapi` writes; and the document of an installation. */
import { type OpenApi, readDocument, routesOf } from '../../../../docs-page/src/document.ts'
import type { Config } from '../../../config/config.ts'
import type { Route } from '../routes.ts'

type Urls = Pick<Config, 'baseUrl' | 'stagingUrl'>

/** The URLs in the published document. */
export const PUBLISHED = {
  baseUrl: 'https://petstore.example/v1',
  stagingUrl: 'https://staging.petstore.example/v1',
}

/**
 * Returns the document of an installation: the published one, as JSON, with the installation's URLs. To make
 * it from the router would take packages of 8 MB of memory, and those may be away while a process runs.
 */
export function documentOf(published: string, urls: Urls): OpenApi {
  const text = published
    .replaceAll(PUBLISHED.baseUrl, () => urls.baseUrl)
    .replaceAll(trpcUrlOf(PUBLISHED), () => trpcUrlOf(urls))
  return { ...readDocument(text), servers: serversOf(urls) }
}

/**
 * Returns the operations that a document has and these routes have not, and the other way round: the router was
 * changed without `npm run openapi`. What an operation takes and returns is not compared.
 */
export function differencesOf(document: OpenApi, routes: Route[]): Set<string> {
  const inDocument = routesOf(document).map(
    ({ method, path, operation }) => `${method} ${path} (${operation.operationId})`,
  )
  const served = routes.map(({ method, path, operationId }) => `${method} ${path} (${operationId})`)
  return new Set(inDocument).symmetricDifference(new Set(served))
}

/** Returns the URL of tRPC. */
export const trpcUrlOf = ({ baseUrl }: Pick<Urls, 'baseUrl'>): string =>
  baseUrl.replace(/\/v1$/i, '/trpc')

/** Returns the servers of a document: that of the installation, then its staging. */
export function serversOf({ baseUrl, stagingUrl }: Urls) {
  const isLocal = /^https?:\/\/(localhost|127\.|\[::1\])/i.test(baseUrl)
  return [
    { url: baseUrl, description: isLocal ? 'Local' : 'Production' },
    ...(stagingUrl ? [{ url: stagingUrl, description: 'Staging' }] : []),
  ]
}
