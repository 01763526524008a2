/** What the service serves: the one value that the chassis is given. */
import type { Resources } from '../procedure/resources.ts'
import { CLIENT, DESCRIPTION, tags } from './product.ts'
import { appRouter } from './router.ts'
import { createStores } from './stores.ts'

export const resources: Resources = {
  router: appRouter,
  tags,
  description: DESCRIPTION,
  client: CLIENT,
  createStores,
}
