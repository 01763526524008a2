/** The product as one value, which the chassis serves. */
import type { Resources } from '../procedure/resources.ts'
import { DESCRIPTION, SAMPLE, tags } from './product.ts'
import { appRouter } from './router.ts'
import { createStores } from './stores.ts'

export const resources: Resources = {
  router: appRouter,
  tags,
  description: DESCRIPTION,
  sample: SAMPLE,
  createStores,
}
