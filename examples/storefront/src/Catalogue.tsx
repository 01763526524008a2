/** The animals of one status or of all, loaded page by page on scroll, and filtered by name and kind. */
import type { Pet } from '@petstore-catalogue/petstore/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { mailTo } from './Contact.tsx'
import { DeveloperNote } from './DeveloperNote.tsx'
import { FilterForm } from './FilterForm.tsx'
import { Nothing } from './Nothing.tsx'
import { contains } from './name.ts'
import { Page } from './Page.tsx'
import { PetCard, Placeholders } from './PetCard.tsx'
import { useTRPC } from './petstore.ts'
import { catalogue } from './queries.ts'
import { atFirst, type Filter, links } from './route.ts'
import { categories, mail, shopName, statusNames, tagline } from './shop.ts'
import { isInTrouble, Trouble } from './Trouble.tsx'

/** The number of animals that load on scroll. After them, a button loads more. */
const UNASKED = 96

/** The number of animals that are searched before a button continues the search. */
const LOOKED_THROUGH_UNASKED = 960

interface Props {
  filter: Filter
  mayAdd: boolean
}

export function Catalogue({ filter, mayAdd }: Props) {
  return (
    <Page title="Our animals">
      <p className="tagline">{tagline}</p>
      <FilterForm filter={filter} />
      <Animals key={filter.status ?? 'all'} filter={filter} mayAdd={mayAdd} />
    </Page>
  )
}

function Animals({ filter, mayAdd }: Props) {
  const query = useInfiniteQuery(catalogue(useTRPC(), filter.status))
  // Read here, so that each change renders the component and checks again whether the button is near.
  const { isFetching, hasNextPage } = query
  /** The numbers of animals at the last click on the button. */
  const [asked, setAsked] = useState({ shown: 0, looked: 0 })
  const pets = query.data?.pages.flat() ?? []
  const shown = pets.filter((pet) => isWanted(pet, filter))
  const rests =
    shown.length >= asked.shown + UNASKED || pets.length >= asked.looked + LOOKED_THROUGH_UNASKED
  const showMore = () => {
    setAsked({ shown: shown.length, looked: pets.length })
    void query.fetchNextPage()
  }
  const isLoading = (query.isPending || query.isFetchingNextPage) && !isInTrouble(query)

  return (
    <>
      {(shown.length > 0 || isLoading) && (
        <ul className="grid" aria-busy={isLoading} aria-label="Animals">
          {shown.map((pet) => (
            <li key={String(pet.id)}>
              <PetCard pet={pet} filter={filter} />
            </li>
          ))}
          {isLoading && <Placeholders count={query.isPending ? 8 : 4} />}
        </ul>
      )}
      {query.isSuccess && shown.length === 0 && !hasNextPage && (
        <NoAnimals filter={filter} looked={pets.length} mayAdd={mayAdd} />
      )}
      {(shown.length > 0 || hasNextPage) && (
        <footer className="end">
          <p role="status">{count(shown.length, pets.length, filter, hasNextPage)}</p>
          {hasNextPage && (
            <button
              type="button"
              className="quiet"
              // While the button is near the viewport, there is room for more animals.
              ref={whenNear(() => {
                if (!isFetching && !rests) void query.fetchNextPage()
              })}
              onClick={showMore}
            >
              {query.isFetchingNextPage
                ? 'Loading…'
                : isNarrow(filter)
                  ? 'Look further'
                  : 'Show more'}
            </button>
          )}
        </footer>
      )}
      {/* In place of the animals that are missing. */}
      <Trouble query={query} />
    </>
  )
}

/** The reason for an empty list, and links to other pages. */
function NoAnimals({ filter, looked, mayAdd }: Props & { looked: number }) {
  if (isNarrow(filter) && looked > 0) {
    const everything = { ...atFirst, status: filter.status }
    return (
      <Nothing>
        <p role="status">{count(0, looked, filter, false)}.</p>
        <div className="actions">
          {filter.status && (
            <a className="button" href={links.catalogue({ ...filter, status: undefined })}>
              Search all animals
            </a>
          )}
          <a
            className={filter.status ? 'button quiet' : 'button'}
            href={links.catalogue(everything)}
          >
            Show every name and kind
          </a>
        </div>
      </Nothing>
    )
  }
  return (
    <Nothing>
      <p>
        {filter.status ? `No animal is ${adjective(filter)}right now.` : 'There is no animal yet.'}
      </p>
      <div className="actions">
        {mayAdd && (
          <a className="button" href={links.add(filter)}>
            Add an animal
          </a>
        )}
        {filter.status && (
          <a
            className={mayAdd ? 'button quiet' : 'button'}
            href={links.catalogue({ ...atFirst, status: undefined })}
          >
            See all animals
          </a>
        )}
        {!mayAdd && !filter.status && mail && (
          <a className="button" href={mailTo(`Which animals will come to ${shopName}?`)}>
            Ask what will come
          </a>
        )}
      </div>
      <DeveloperNote>
        <code>npm run seed</code> in the folder of the service adds some dozens of animals.
      </DeveloperNote>
    </Nothing>
  )
}

const isNarrow = ({ name, kind }: Filter) => name.trim() !== '' || kind !== undefined

/** Whether an animal matches the filter. The service has no filter by name or category. */
const isWanted = ({ name, categoryId }: Pet, { name: part, kind }: Filter) =>
  contains(name, part) &&
  (kind === undefined || (kind === 'other' ? !categories.has(categoryId) : kind === categoryId))

const adjective = ({ status }: Filter) => (status ? `${statusNames[status].toLowerCase()} ` : '')

function count(shown: number, looked: number, filter: Filter, more: boolean): string {
  const animals = (number: number) =>
    `${number} ${adjective(filter)}${number === 1 ? 'animal' : 'animals'}`
  if (isNarrow(filter)) {
    return `${shown || 'None'} found among ${more ? 'the first' : 'all'} ${animals(looked)}`
  }
  return `${animals(shown)} ${more ? 'so far' : 'in all'}`
}

/** A ref that calls `act` when the element is about to be scrolled into view. */
function whenNear(act: () => void) {
  return (element: Element | null) => {
    if (!element) return
    // The last one: a busy page hears at once that the element was far away, and that it is near.
    const observer = new IntersectionObserver(
      (entries) => entries.at(-1)?.isIntersecting && act(),
      { rootMargin: '600px' },
    )
    observer.observe(element)
    return () => observer.disconnect()
  }
}
