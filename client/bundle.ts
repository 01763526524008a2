/** How the stand-in is bundled: with the service's router, for Node and browsers. */
import { type BuildOptions, build } from 'rolldown'

/** The libraries that the bundle contains. All others are those of the frontend. */
export const bundled = ['zod', 'trpc-to-openapi']

/**
 * Bundles a stand-in. It contains the router, so that it cannot differ from the service; tree shaking removes what
 * only the service needs.
 */
export const bundleStandIn = (input: string, options: Pick<BuildOptions, 'output' | 'write'>) =>
  build({
    input,
    external: (name) => !['.', '/', ...bundled].some((start) => name.startsWith(start)),
    platform: 'neutral',
    treeshake: { moduleSideEffects: false },
    ...options,
  })
