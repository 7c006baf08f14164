# The files of the report page as constants of the program (src/run/report/page_files.h).
set(page_folder ${CMAKE_SOURCE_DIR}/src/run/report)
set(page_source ${CMAKE_BINARY_DIR}/page_files.cc)
add_custom_command(
  OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${page_folder} -DOUT=${page_source} -P ${CMAKE_SOURCE_DIR}/cmake/write_page_files.cmake
  DEPENDS ${page_folder}/page.html ${page_folder}/page.css ${page_folder}/charts.js ${page_folder}/page.js ${CMAKE_SOURCE_DIR}/cmake/write_page_files.cmake
  VERBATIM)
target_sources(tenon_run PRIVATE ${page_source})
