/** Data of the shop that the service does not have: names of categories and statuses, and contacts. */
import type { PetStatus } from '@petstore-catalogue/petstore/client'

/** The name of the shop, in the header and in the title of the window. */
export const shopName = 'Petstore'

/** The description of the shop in one line. */
export const tagline = 'Dogs, cats, birds, small pets and fish: come and find a friend.'

/** The contact for a key, if the shop has no key for visitors. */
export const howToGetKey = 'No key yet? You get one at our counter.'

/** The contacts for questions about an animal; either may be empty. */
export const mail: string = 'hello@petstore.example'
export const telephone: string = '+1 555 0100'

/** The drawings in `animals.svg`. */
export type Species = 'dog' | 'cat' | 'bird' | 'hamster' | 'fish' | 'paw'

export interface Category {
  name: string
  species: Species
}

/**
 * The categories by their numbers, because the service stores only numbers. These are those of its
 * example animals: replace them by yours.
 */
export const categories: ReadonlyMap<bigint, Category> = new Map([
  [1n, { name: 'Dog', species: 'dog' }],
  [2n, { name: 'Cat', species: 'cat' }],
  [3n, { name: 'Bird', species: 'bird' }],
  [4n, { name: 'Small pet', species: 'hamster' }],
  [5n, { name: 'Fish', species: 'fish' }],
])

/** The category of all numbers without a name. */
export const otherCategory: Category = { name: 'Other pet', species: 'paw' }

/** Returns the category with this number. */
export const categoryOf = (id: bigint): Category => categories.get(id) ?? otherCategory

/** The names of the statuses, in the order of the filter. */
export const statusNames: Readonly<Record<PetStatus, string>> = {
  available: 'Available',
  pending: 'Reserved',
  sold: 'Sold',
}

/** The statuses as the rest of a sentence that begins with the name of an animal. */
export const statusSentences: Readonly<Record<PetStatus, string>> = {
  available: 'is looking for a home.',
  pending: 'is reserved at the moment.',
  sold: 'has found a home.',
}
